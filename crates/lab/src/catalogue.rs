//! Lists the figures that `reproduce` knows, one entry each.

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::experiment::{self, Spec};
use crate::figures::{self, Canvas, Style};
use crate::findings::Findings;

/// Makes the figures from their entries: a name, the type of its spec, and the modules of the same name that run it
/// (`experiment`) and draw it (`figures`). The spec that is built in lies in `experiments/NAME.toml`.
macro_rules! catalogue {
    ($($(#[$documentation:meta])* $figure:ident = $name:literal, $module:ident::$spec:ident;)*) => {
        /// A figure of the paper, or what goes with one.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum)]
        pub enum Figure {
            $($(#[$documentation])* #[serde(rename = $name)] #[value(name = $name)] $figure,)*
        }

        impl Figure {
            /// All of them, in the order of the paper.
            pub const ALL: &[Self] = &[$(Self::$figure,)*];

            /// The name on the command line, in files and in results.
            pub fn name(self) -> &'static str {
                match self { $(Self::$figure => $name,)* }
            }

            /// The text of the spec that is built in.
            pub(crate) fn embedded_spec(self) -> &'static str {
                match self { $(Self::$figure => include_str!(concat!("../experiments/", $name, ".toml")),)* }
            }

            /// A spec of this figure.
            pub(crate) fn read_spec(self, text: &str) -> Result<Spec> {
                match self { $(Self::$figure => Spec::of::<experiment::$module::$spec>(self, text),)* }
            }

            /// Draws what was found; it says so where nothing was.
            pub(crate) fn draw(self, findings: &Findings, style: Style) -> Result<Canvas> {
                match self { $(Self::$figure => figures::$module::draw(findings, style),)* }
            }
        }
    };
}

catalogue! {
    /// Figs. 1 and 2: which contexts gains can whiten, and how they get there
    Geometry = "geometry", geometry::GeometrySpec;
    /// Fig. 3: two neurons in synthetic contexts
    Synthetic = "synthetic", synthetic::SyntheticSpec;
    /// Fig. 4 A–D, F: natural images, 5 × 5 pixels
    Natural = "natural", natural::NaturalSpec;
    /// Fig. 4 E and the appendix: error against the number of interneurons
    Interneurons = "interneurons", interneurons::InterneuronsSpec;
    /// The appendix: 16 × 1 pixels against cosines and principal components
    OneDimensional = "one-dimensional", one_dimensional::OneDimensionalSpec;
    /// The appendix: contexts with the same spectra and random eigenvectors
    Control = "control", control::ControlSpec;
    /// The appendix: Algorithm 3
    Biological = "biological", biological::BiologicalSpec;
    /// The authors' rebuttal: other leaks
    Leak = "leak", leak::LeakSpec;
    /// The paper's argument: synapses alone, gains alone, both
    Ablation = "ablation", ablation::AblationSpec;
    /// Beyond the paper: when fast gains need slow synapses
    TimeScales = "time-scales", time_scales::TimeScalesSpec;
    /// Beyond the paper: weights and gains of a few bits, and noisy responses
    Hardware = "hardware", hardware::HardwareSpec;
    /// Beyond the paper: samples until an unseen natural context is whitened
    Adaptation = "adaptation", adaptation::AdaptationSpec;
    /// Beyond the paper: Algorithm 3 on natural contexts
    Dale = "dale", dale::DaleSpec;
    /// Beyond the paper: the recurrent loop cut short
    Loop = "loop", recurrence::RecurrenceSpec;
}
