//! Keeps parts of the circuits of a run.

use leukos::Circuit as Core;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::{Number, by_rows, refuse, room, shaped};
use crate::words::word;

/// A part of a circuit.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Gains,
    Multipliers,
    Synapses,
    Feedforward,
}

const PARTS: [(&str, Part); 4] = [
    ("gains", Part::Gains),
    ("synapses", Part::Synapses),
    ("feedforward", Part::Feedforward),
    ("multipliers", Part::Multipliers),
];

/// Some parts of one circuit after another.
pub struct Trace<T> {
    neurons: usize,
    interneurons: usize,
    steps: usize,
    parts: Vec<(String, Part, Vec<T>)>,
}

impl<T: Number> Trace<T> {
    /// Of parts of so many circuits like this one. Room is made for all of them at once, or refused.
    pub fn new(circuit: &Core<T>, record: &[String], steps: usize) -> PyResult<Self> {
        let (n, k) = (circuit.neurons(), circuit.interneurons());
        let part = |name: &String| {
            let part = word("record", name, &PARTS)?;
            if part == Part::Feedforward && circuit.synapses().is_tied() {
                return Err(refuse("record", "no \"feedforward\" of a tied circuit", "it"));
            }
            let each = if matches!(part, Part::Gains | Part::Multipliers) { k } else { n * k };
            Ok((name.clone(), part, room("record", steps, each)?))
        };
        let parts = record.iter().map(part).collect::<PyResult<_>>()?;
        Ok(Self { neurons: n, interneurons: k, steps: 0, parts })
    }

    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    pub fn keep(&mut self, circuit: &Core<T>) {
        let synapses = circuit.synapses();
        self.steps += 1;
        for (_, part, kept) in &mut self.parts {
            match part {
                Part::Gains => kept.extend(circuit.gains()),
                Part::Multipliers => kept.extend(circuit.multipliers()),
                Part::Synapses => kept.extend(by_rows(synapses.feedback())),
                // Its transpose is kept by columns.
                Part::Feedforward => kept.extend(synapses.feedforward_transposed().as_slice()),
            }
        }
    }

    /// The arrays by name.
    pub fn finish(self, py: Python<'_>) -> PyResult<Py<PyDict>> {
        let (n, k, steps, arrays) = (self.neurons, self.interneurons, self.steps, PyDict::new(py));
        for (name, part, kept) in self.parts {
            let array = match part {
                Part::Gains | Part::Multipliers => shaped(py, kept, [steps, k]).into_any(),
                Part::Synapses => shaped(py, kept, [steps, n, k]).into_any(),
                Part::Feedforward => shaped(py, kept, [steps, k, n]).into_any(),
            };
            arrays.set_item(name, array)?;
        }
        Ok(arrays.unbind())
    }
}
