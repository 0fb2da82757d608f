//! Solves the assignment problem: gives each agent an option so that the sum of the scores is largest.

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
    /// The options not reached yet by the agent being added, and those reached with the lengths of their paths.
    open: Vec<usize>,
    reached: Vec<(usize, f64)>,
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
            open: Vec::with_capacity(options),
            reached: Vec::with_capacity(options + 1),
        }
    }

    fn add(&mut self, agent: usize) {
        let root = self.scores.rows();
        self.agent_of[root] = agent;
        self.distance.fill(f64::INFINITY);
        self.open.clear();
        self.open.extend(0..root);
        self.reached.clear();
        let (mut option, mut length) = (root, 0.0);
        while self.agent_of[option] != NOBODY {
            self.reached.push((option, length));
            (option, length) = self.reach_from(option, length);
        }
        self.reprice(length);
        while option != root {
            let before = self.before[option];
            self.agent_of[option] = self.agent_of[before];
            option = before;
        }
    }

    /// Looks at the open options by way of the agent who takes `from`, at the end of a path of this length, and
    /// reaches the nearest of them: it, and the length of the path to it.
    fn reach_from(&mut self, from: usize, length: f64) -> (usize, f64) {
        let agent = self.agent_of[from];
        let (scores, offset) = (self.scores.column(agent), length - self.agent_price[agent]);
        let (mut place, mut least) = (0, f64::INFINITY);
        for (i, &option) in self.open.iter().enumerate() {
            let through = offset - scores[option] - self.option_price[option];
            if through < self.distance[option] {
                (self.distance[option], self.before[option]) = (through, from);
            }
            if self.distance[option] < least {
                (place, least) = (i, self.distance[option]);
            }
        }
        (self.open.swap_remove(place), least)
    }

    /// Changes prices so that the paths found cost nothing more, and no step costs less than nothing.
    fn reprice(&mut self, length: f64) {
        for &(option, distance) in &self.reached {
            self.agent_price[self.agent_of[option]] += length - distance;
            self.option_price[option] -= length - distance;
        }
    }
}
