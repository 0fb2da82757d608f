//! Names the long loops, which are compiled here for both precisions.
//!
//! Generic code is compiled where its number type is chosen: in every program, test and binding that runs a circuit,
//! and with it all of the linear algebra behind it. Called through this trait it is compiled once, in this crate.

use crate::circuit::{Parts, PartsMut, Synapses};
use crate::ensemble::{self, Group};
use crate::error::Test;
use crate::factor::{self, Factor};
use crate::learn::{self, Drive, Ending};
use crate::linalg::{self, View};
use crate::pair::{self, Pair};
use crate::real::Real;
use crate::rules::Rules;
use crate::small::{self, Small};

/// Declares functions of a number type and defines them for both types by the generic ones they name.
macro_rules! compiled {
    ($(fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? = $generic:path;)*) => {
        /// The long loops of a number type. Their argument types are private, so they cannot be called from outside.
        #[allow(private_interfaces)]
        pub trait Compiled: Sized {
            $(fn $name($($argument: $type),*) $(-> $result)? where Self: Real;)*
        }
        compiled! { @for f32 $(fn $name($($argument: $type),*) $(-> $result)? = $generic;)* }
        compiled! { @for f64 $(fn $name($($argument: $type),*) $(-> $result)? = $generic;)* }
    };
    (@for $number:ident $(fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? = $generic:path;)*) => {
        #[allow(private_interfaces)]
        impl Compiled for $number {
            $(#[inline(never)]
            fn $name($($argument: $type),*) $(-> $result)? {
                $generic($($argument),*)
            })*
        }
    };
}

compiled! {
    fn room_for_factor(synapses: &Synapses<Self>) -> Factor<Self> = factor::room_for_factor;
    fn factorise(factor: &mut Factor<Self>, parts: Parts<'_, Self>) -> Result<(), Test> = factor::factorise;
    fn solve(factor: &mut Factor<Self>, x: &mut [Self]) = factor::solve;
    fn invert(factor: &mut Factor<Self>, inverse: &mut [Self]) = factor::invert;
    fn multiply(out: &mut [Self], left: View<'_, Self>, right: View<'_, Self>) = linalg::write_product;
    fn step(
        rules: &Rules<Self>,
        drive: Drive<'_, Self>,
        from: Parts<'_, Self>,
        to: PartsMut<'_, Self>
    ) = learn::step;
    fn advance_small(
        small: &mut Small<'_, Self>,
        inputs: &mut [Self],
        stimuli: &[Self],
        responses: &mut [Self]
    ) -> (usize, Ending) = small::advance_small;
    fn expect_small(
        small: &mut Small<'_, Self>,
        correlations: &mut [Self],
        covariance: &[Self],
        steps: usize
    ) -> (usize, Ending) = small::expect_small;
    fn advance_pair(
        pair: &mut Pair<Self>,
        rules: &Rules<Self>,
        stimuli: &[Self],
        responses: &mut [Self]
    ) -> (usize, Ending) = pair::advance_pair;
    fn expect_pair(
        pair: &mut Pair<Self>,
        rules: &Rules<Self>,
        covariance: &[Self],
        steps: usize
    ) -> (usize, Ending) = pair::expect_pair;
    fn advance_groups(
        groups: &mut [Group<Self>],
        rules: &Rules<Self>,
        before: u64,
        stimuli: &[Self],
        responses: &mut [Self]
    ) = ensemble::advance_groups;
}
