//! Solves the assignment problem: who takes which option so that the sum of their scores is largest.

use crate::matrix::Matrix;

/// The option of every agent that maximises Σ score(option, agent), where no option is taken twice.
///
/// `scores` has a column for each agent and a row for each option, of which there are at least as many.
/// Agents are added one by one; each time the cheapest path of reassignments that ends at an untaken option is found
/// as Dijkstra would, on costs kept non-negative by a price for each agent and option (Jonker and Volgenant 1987).
pub(crate) fn best_assignment(scores: &Matrix) -> Vec<usize> {
    debug_assert!(scores.columns() <= scores.rows(), "an agent would go without an option");
    let mut assignment = Assignment::new(scores);
    (0..scores.columns()).for_each(|agent| assignment.add(agent));
    let mut option_of = vec![0; scores.columns()];
    for (option, &agent) in assignment.agent_of[..scores.rows()].iter().enumerate() {
        if agent != NOBODY {
            option_of[agent] = option;
        }
    }
    option_of
}

/// Nobody takes this option yet.
const NOBODY: usize = usize::MAX;

struct Assignment<'a> {
    scores: &'a Matrix,
    /// Who takes each option; one more option, the root, is taken by the agent that is being added.
    agent_of: Vec<usize>,
    agent_price: Vec<f64>,
    option_price: Vec<f64>,
    /// The cost of the cheapest path to each option, beyond the prices, and the option before it on that path.
    distance: Vec<f64>,
    before: Vec<usize>,
    reached: Vec<bool>,
}

impl<'a> Assignment<'a> {
    fn new(scores: &'a Matrix) -> Self {
        let (options, agents) = (scores.rows(), scores.columns());
        Self {
            scores,
            agent_of: vec![NOBODY; options + 1],
            agent_price: vec![0.0; agents],
            option_price: vec![0.0; options + 1],
            distance: vec![0.0; options],
            before: vec![options; options],
            reached: vec![false; options + 1],
        }
    }

    fn add(&mut self, agent: usize) {
        let root = self.scores.rows();
        self.agent_of[root] = agent;
        self.distance.fill(f64::INFINITY);
        self.reached.fill(false);
        let mut option = root;
        while self.agent_of[option] != NOBODY {
            self.look_from(option);
            option = self.nearest();
        }
        while option != root {
            let before = self.before[option];
            self.agent_of[option] = self.agent_of[before];
            option = before;
        }
    }

    /// Shortens the paths to the options not reached yet by way of the agent who takes `from`.
    fn look_from(&mut self, from: usize) {
        self.reached[from] = true;
        let agent = self.agent_of[from];
        let (scores, price) = (self.scores.column(agent), self.agent_price[agent]);
        for (option, score) in scores.iter().enumerate().filter(|&(option, _)| !self.reached[option]) {
            let cost = -score - price - self.option_price[option];
            if cost < self.distance[option] {
                (self.distance[option], self.before[option]) = (cost, from);
            }
        }
    }

    /// The nearest option not reached yet; prices change so that the path to it costs nothing more.
    fn nearest(&mut self) -> usize {
        let open = (0..self.distance.len()).filter(|&option| !self.reached[option]);
        let nearest = open.min_by(|&a, &b| self.distance[a].total_cmp(&self.distance[b])).unwrap_or(0);
        let cost = self.distance[nearest];
        for option in 0..self.reached.len() {
            if self.reached[option] {
                self.agent_price[self.agent_of[option]] += cost;
                self.option_price[option] -= cost;
            } else {
                self.distance[option] -= cost;
            }
        }
        nearest
    }
}
