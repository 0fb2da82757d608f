//! Chooses colours, dashes and line widths: one palette for every picture, in a light and a print style.
//!
//! The colours are those of Okabe and Ito, which colour-blind readers can tell apart. Print is for black ink as well:
//! no grid, darker colours, a dash pattern of its own for each role and a grey map for filters.

/// How a picture is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// For screens: a faint grid, solid lines in colour.
    Light,
    /// For paper, also without colour: no grid, dashes that tell lines apart.
    Print,
}

/// What a line or a point stands for. A role has the same colour in every picture; the colours that the paper names are
/// the paper's, so some roles share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Synapses W₀ before learning, and what they lead to: blue.
    Initial,
    /// Synapses W_T after learning, and what they lead to: red.
    Learned,
    /// What is known beforehand: V, cosines.
    Truth,
    /// The covariance of a context: orange.
    Context,
    /// The unit circle; gains held fixed; the eigenvectors of contexts: green.
    Unit,
    /// A fourth series beside others: purple.
    Further,
    /// A third reading beside others.
    Other,
    /// Contexts that were learned from, where those kept back are red: blue.
    Seen,
    /// Synapses W₀ where blue and red are taken (Fig. 4): purple.
    Random,
    /// Synapses W_T as a basis (Fig. 4 F): blue.
    Basis,
    /// What gains can whiten (Fig. 2): blue.
    Reachable,
    /// Stimuli and the contexts that occur (Figs. 1 and 2): purple.
    Occurring,
}

impl Style {
    /// Both, in the order in which they are written.
    pub const ALL: [Self; 2] = [Self::Light, Self::Print];

    /// What a file name has besides the figure's.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Light => "",
            Self::Print => "-print",
        }
    }

    /// Letters and axes.
    pub fn ink(self) -> &'static str {
        match self {
            Self::Light => "#222222",
            Self::Print => "#000000",
        }
    }

    /// Letters that matter less.
    pub fn faint_ink(self) -> &'static str {
        match self {
            Self::Light => "#666666",
            Self::Print => "#333333",
        }
    }

    /// The grid, where there is one.
    pub fn grid(self) -> Option<&'static str> {
        match self {
            Self::Light => Some("#ececec"),
            Self::Print => None,
        }
    }

    /// Shaded spans behind curves.
    pub fn shade(self) -> &'static str {
        match self {
            Self::Light => "#f0f0f0",
            Self::Print => "#e6e6e6",
        }
    }

    /// The width of a curve.
    pub fn line(self) -> f64 {
        match self {
            Self::Light => 1.6,
            Self::Print => 1.2,
        }
    }

    /// The colour of a role.
    pub fn colour(self, role: Role) -> &'static str {
        let [light, print] = match role {
            Role::Initial | Role::Seen | Role::Basis | Role::Reachable => ["#0072b2", "#00557f"],
            Role::Learned => ["#d55e00", "#a34700"],
            Role::Truth => ["#222222", "#000000"],
            Role::Context => ["#e69f00", "#b37b00"],
            Role::Unit => ["#009e73", "#00694c"],
            Role::Further | Role::Random | Role::Occurring => ["#b0568a", "#7d3a61"],
            Role::Other => ["#56b4e9", "#2b7fb0"],
        };
        match self {
            Self::Light => light,
            Self::Print => print,
        }
    }

    /// The dashes of a role; `None` is a solid line.
    pub fn dash(self, role: Role) -> Option<&'static str> {
        match (self, role) {
            (_, Role::Truth) => Some("4 3"),
            (Self::Light, _) | (Self::Print, Role::Learned) => None,
            (Self::Print, Role::Initial | Role::Random | Role::Reachable) => Some("6 2"),
            (Self::Print, Role::Context | Role::Occurring) => Some("1.5 1.5"),
            (Self::Print, Role::Unit) => Some("5 2 1 2"),
            (Self::Print, Role::Further | Role::Seen | Role::Basis) => Some("3 2"),
            (Self::Print, Role::Other) => Some("7 2 1 2 1 2"),
        }
    }

    /// How strongly the bars of a role are filled: in print so that they are told apart without colour.
    pub fn filled(self, role: Role) -> f64 {
        match (self, role) {
            (Self::Print, Role::Basis) => 0.9,
            (Self::Print, Role::Random) => 0.08,
            _ => 0.45,
        }
    }

    /// The colour of a number from −1 to 1: blue over white to red, or black over grey to white.
    pub fn diverging(self, share: f64) -> String {
        let [red, green, blue] = self.diverging_bytes(share);
        format!("#{red:02x}{green:02x}{blue:02x}")
    }

    /// The same in red, green and blue.
    pub fn diverging_bytes(self, share: f64) -> [u8; 3] {
        let share = share.clamp(-1.0, 1.0);
        match self {
            Self::Light if share < 0.0 => blend(WHITE, [0x00, 0x51, 0x86], -share),
            Self::Light => blend(WHITE, [0xb8, 0x43, 0x00], share),
            Self::Print => blend([0, 0, 0], WHITE, 0.5 + 0.5 * share),
        }
    }
}

const WHITE: [u8; 3] = [0xff; 3];

#[allow(clippy::cast_sign_loss)] // A mixture of two bytes is one.
fn blend(from: [u8; 3], to: [u8; 3], share: f64) -> [u8; 3] {
    [0, 1, 2].map(|i| (f64::from(from[i]) * (1.0 - share) + f64::from(to[i]) * share).round() as u8)
}
