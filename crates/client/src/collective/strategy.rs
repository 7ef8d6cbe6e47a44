//! The strategies by name: what a hint or the environment can ask for, and what was done.
//!
//! [`Strategy`] is what may be forced; [`Collective`] is how a collective access was done. What is chosen when
//! nothing is forced, and why, is in `collective` and told by [`Choice`].

/// How accesses through views with gaps are done, and collective ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// Every rank for itself; servers know the view, and only its bytes travel.
    #[default]
    Views,
    /// Collective accesses are regrouped among the ranks first, where that gives the same bytes; others
    /// are as with [`Strategy::Views`]. So it is with all that follow but sieving.
    TwoPhase,
    /// Windows of the file travel, holes included. Slow; for comparison.
    Sieving,
    /// Servers direct collective accesses, piece by piece. Slow; for comparison.
    Ddio,
    /// Servers direct them, with one packet per rank and block.
    PbDdio,
    /// Servers direct them, with one packet per rank and several blocks.
    MbDdio,
    /// Servers direct whole blocks to ranks, which regroup them.
    TwoPhaseDdio,
}

impl Strategy {
    const ALL: [Strategy; 7] = [
        Strategy::Views,
        Strategy::TwoPhase,
        Strategy::Sieving,
        Strategy::Ddio,
        Strategy::PbDdio,
        Strategy::MbDdio,
        Strategy::TwoPhaseDdio,
    ];

    /// As hint and environment spell it.
    pub fn word(self) -> &'static str {
        match self {
            Strategy::Views => "views",
            Strategy::TwoPhase => "two_phase",
            Strategy::Sieving => "sieving",
            Strategy::Ddio => "ddio",
            Strategy::PbDdio => "pb_ddio",
            Strategy::MbDdio => "mb_ddio",
            Strategy::TwoPhaseDdio => "two_phase_ddio",
        }
    }

    /// By its word; `independent` is another one for views.
    pub fn of(word: &str) -> Option<Strategy> {
        if word == "independent" {
            return Some(Strategy::Views);
        }
        let mut all = Strategy::ALL.into_iter();
        all.find(|strategy| strategy.word() == word)
    }

    /// All words, for those who mistype one.
    pub(crate) fn words() -> String {
        let words: Vec<&str> = Strategy::ALL.iter().map(|s| s.word()).collect();
        format!("independent, {}", words.join(", "))
    }

    /// How collective accesses are done then.
    pub(crate) fn collective(self) -> Collective {
        match self {
            Strategy::Views => Collective::Independent,
            Strategy::TwoPhase => Collective::TwoPhase,
            Strategy::Sieving => Collective::Sieving,
            Strategy::Ddio => Collective::Ddio,
            Strategy::PbDdio => Collective::PbDdio,
            Strategy::MbDdio => Collective::MbDdio,
            Strategy::TwoPhaseDdio => Collective::TwoPhaseDdio,
        }
    }

    /// As it travels; 0 is none.
    pub(crate) fn number(strategy: Option<Strategy>) -> u64 {
        strategy.map_or(0, |strategy| strategy as u64 + 1)
    }

    pub(crate) fn of_number(number: u64) -> Option<Strategy> {
        let index = usize::try_from(number.checked_sub(1)?).ok()?;
        Strategy::ALL.get(index).copied()
    }
}

/// How a collective access was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Collective {
    /// Every rank for itself.
    Independent,
    /// Regrouped among the ranks.
    TwoPhase,
    /// Every rank for itself, in windows of the file.
    Sieving,
    /// Directed by the servers, piece by piece.
    Ddio,
    /// Directed by the servers, a packet per rank and block.
    PbDdio,
    /// Directed by the servers, a packet per rank and several blocks.
    MbDdio,
    /// Blocks directed by the servers, then regrouped among the ranks, or the other way round.
    TwoPhaseDdio,
}

impl Collective {
    /// How many there are.
    pub(crate) const COUNT: usize = 7;
    const ALL: [Collective; Self::COUNT] = [
        Collective::Independent,
        Collective::TwoPhase,
        Collective::Sieving,
        Collective::Ddio,
        Collective::PbDdio,
        Collective::MbDdio,
        Collective::TwoPhaseDdio,
    ];

    /// As it is noted: 0 is none.
    pub(crate) fn of(number: u64) -> Option<Collective> {
        let index = usize::try_from(number.checked_sub(1)?).ok()?;
        Collective::ALL.get(index).copied()
    }

    pub(crate) fn number(self) -> u64 {
        self as u64 + 1
    }

    /// In words of hints.
    pub fn word(self) -> &'static str {
        match self {
            Collective::Independent => "independent",
            Collective::TwoPhase => "two_phase",
            Collective::Sieving => "sieving",
            Collective::Ddio => "ddio",
            Collective::PbDdio => "pb_ddio",
            Collective::MbDdio => "mb_ddio",
            Collective::TwoPhaseDdio => "two_phase_ddio",
        }
    }

    /// Whether servers direct it.
    pub fn is_directed(self) -> bool {
        matches!(
            self,
            Collective::Ddio | Collective::PbDdio | Collective::MbDdio | Collective::TwoPhaseDdio
        )
    }
}

/// Why a strategy was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A hint or the environment asked for it.
    Forced,
    /// All ranks reach all servers directly, so there is nothing to gain.
    AllDirect,
    /// The team cannot do anything else: one rank only, through a gateway, or a view too long to be told.
    OnlyWay,
    /// It has the least predicted time.
    Predicted,
    /// Something else was asked for or predicted, but would not give the same bytes here: atomic mode,
    /// bytes that several ranks write, holes, ranks that cannot take part.
    OtherBytes,
    /// The file is being given another layout, or has got one just now.
    OtherLayout,
    /// Servers refused to direct it, for a reason that does not concern independent accesses.
    Refused,
}

impl Reason {
    /// In words.
    pub fn text(self) -> &'static str {
        match self {
            Reason::Forced => "asked for",
            Reason::AllDirect => "all ranks reach all servers directly",
            Reason::OnlyWay => "the team can do nothing else",
            Reason::Predicted => "least predicted time",
            Reason::OtherBytes => "anything else could give other bytes here",
            Reason::OtherLayout => "the file is being given another layout",
            Reason::Refused => "servers did not direct it",
        }
    }
}

/// How the last collective access was decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// What was done.
    pub how: Collective,
    /// Why.
    pub reason: Reason,
    /// Seconds that the cost model predicts for it, if it was asked.
    pub predicted_s: Option<f64>,
    /// Predicted seconds of all it compared, the fastest first.
    pub alternatives: Vec<(Collective, f64)>,
    /// Blocks from which a packet is built, where servers direct.
    pub blocks: u64,
}
