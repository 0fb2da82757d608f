//! Whitens groups of channels: each as if it were alone.

use std::ops::ControlFlow;

use leukos::contexts::stream;
use leukos::{
    BadSamples, Error, GroupedWhitener, Matrix, Moments, TrainingSynapses, Whitener, WhitenerSettings,
    WhitenerTraining,
};
use rand_distr::{Distribution, StandardNormal};

use crate::bridge::bits_of;

const CHANNELS: usize = 5;
const ROWS: usize = 700;

fn groups() -> Vec<Vec<usize>> {
    vec![vec![4, 0], vec![2], vec![1, 3]]
}

/// Correlated rows of all channels, with an offset.
fn stimuli() -> Vec<f64> {
    let mut rng = stream(17, 0);
    let row = |common: f64, own: Vec<f64>| {
        own.into_iter().enumerate().map(move |(j, x)| 3.0 + j as f64 + common + x)
    };
    let mut draw = || -> f64 { StandardNormal.sample(&mut rng) };
    (0..ROWS).flat_map(|_| row(draw(), (0..CHANNELS).map(|_| draw()).collect())).collect()
}

fn taken(rows: &[f64], channels: &[usize]) -> Vec<f64> {
    rows.chunks_exact(CHANNELS).flat_map(|row| channels.iter().map(|&channel| row[channel])).collect()
}

fn training() -> WhitenerTraining {
    let mut moments = vec![Moments::new(CHANNELS), Moments::new(CHANNELS)];
    let stimuli = stimuli();
    moments[0].update(&stimuli[..200 * CHANNELS]).unwrap();
    moments[1].update(&stimuli[200 * CHANNELS..400 * CHANNELS]).unwrap();
    WhitenerTraining { moments, ..WhitenerTraining::default() }
}

fn trained() -> GroupedWhitener {
    let watch = |_| ControlFlow::Continue(());
    training().fit_groups(&groups(), &WhitenerSettings::default(), &mut stream(0, 0), watch).unwrap()
}

/// What each group does when it is alone.
fn apart(own: &[usize]) -> Whitener {
    let training = training();
    let moments = training.moments.iter().map(|moments| moments.select(own).unwrap()).collect();
    let training = WhitenerTraining { moments, ..training };
    training.fit(WhitenerSettings::default(), &mut stream(0, 0), |_| ControlFlow::Continue(())).unwrap()
}

#[test]
fn each_group_is_whitened_as_if_it_were_alone() {
    let (stimuli, mut whitener) = (stimuli(), trained());
    let mut responses = vec![0.0; stimuli.len()];
    whitener.whiten(&stimuli, &mut responses).unwrap();
    let mut frozen = vec![0.0; stimuli.len()];
    whitener.frozen().unwrap().map(&stimuli, &mut frozen).unwrap();
    for own in groups() {
        let (mut alone, stimuli) = (apart(&own), taken(&stimuli, &own));
        let mut expected = vec![0.0; stimuli.len()];
        alone.whiten(&stimuli, &mut expected).unwrap();
        assert_eq!(bits_of(&taken(&responses, &own)), bits_of(&expected), "{own:?}");
        alone.whiten_frozen(&stimuli, &mut expected).unwrap();
        assert_eq!(bits_of(&taken(&frozen, &own)), bits_of(&expected), "{own:?}, frozen");
    }
}

#[test]
fn stimuli_come_back() {
    let (stimuli, mut whitener, mut replay) = (stimuli(), trained(), trained());
    let (mut responses, mut back) = (vec![0.0; stimuli.len()], vec![0.0; stimuli.len()]);
    whitener.whiten(&stimuli, &mut responses).unwrap();
    replay.unwhiten(&responses, &mut back).unwrap();
    let farthest = |back: &[f64]| back.iter().zip(&stimuli).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max);
    assert!(farthest(&back) < 1e-9, "{}", farthest(&back));
    whitener.frozen().unwrap().map(&stimuli, &mut responses).unwrap();
    whitener.frozen_inverse().unwrap().map(&responses, &mut back).unwrap();
    assert!(farthest(&back) < 1e-9, "{}", farthest(&back));
}

#[test]
fn matrices_and_means_are_put_together() {
    let whitener = trained();
    let (matrix, inverse, mean) =
        (whitener.whitening_matrix().unwrap(), whitener.dewhitening_matrix().unwrap(), whitener.mean());
    let stimuli = stimuli();
    let mut responses = vec![0.0; stimuli.len()];
    whitener.frozen().unwrap().map(&stimuli, &mut responses).unwrap();
    for (row, response) in stimuli.chunks_exact(CHANNELS).zip(responses.chunks_exact(CHANNELS)) {
        for i in 0..CHANNELS {
            let expected: f64 = (0..CHANNELS).map(|j| matrix[(i, j)] * (row[j] - mean[j])).sum();
            assert!((expected - response[i]).abs() < 1e-12);
        }
    }
    assert_eq!((matrix[(0, 1)], matrix[(4, 2)]), (0.0, 0.0), "nothing between groups");
    assert!(matrix[(0, 4)] != 0.0 && matrix[(1, 3)] != 0.0);
    for (i, j) in (0..CHANNELS).flat_map(|i| (0..CHANNELS).map(move |j| (i, j))) {
        let product: f64 = (0..CHANNELS).map(|k| matrix[(i, k)] * inverse[(k, j)]).sum();
        assert!((product - f64::from(u8::from(i == j))).abs() < 1e-12);
    }
}

#[test]
fn strength_bad_samples_and_contexts_reach_every_group() {
    let mut whitener = trained();
    whitener.set_strength(0.25).unwrap();
    whitener.set_bad_samples(BadSamples::Zero);
    assert!(whitener.whiteners().all(|group| group.settings().strength == 0.25));
    assert!(whitener.set_strength(1.5).unwrap_err().to_string().contains("strength"));
    let mut stimuli = stimuli();
    stimuli[CHANNELS + 2] = f64::NAN;
    let mut responses = vec![1.0; stimuli.len()];
    whitener.whiten(&stimuli, &mut responses).unwrap();
    assert_eq!(responses[CHANNELS + 2], 0.0);
    assert!(responses[CHANNELS] != 0.0, "other groups go on");
    let before: Vec<f64> = whitener.whiteners_mut().map(|group| group.status().rows_in_force).collect();
    whitener.begin_context();
    for (group, before) in whitener.whiteners_mut().zip(before) {
        assert!(group.status().rows_in_force < 0.1 * before);
    }
}

#[test]
fn a_bad_sample_is_named_by_its_place_among_all_channels() {
    let mut stimuli = stimuli();
    let place = 600 * CHANNELS + 3;
    stimuli[place] = f64::INFINITY;
    let mut whitener = trained();
    whitener.set_bad_samples(BadSamples::Error);
    let mut responses = vec![0.0; stimuli.len()];
    let expected = Err(Error::BadSample { index: place, value: f64::INFINITY });
    assert_eq!(whitener.frozen().unwrap().map(&stimuli, &mut responses), expected);
    assert_eq!(whitener.whiten(&stimuli, &mut responses), expected);
}

#[test]
fn a_frozen_whitener_goes_on_with_the_row_it_held() {
    let stimuli = stimuli();
    let mut whitener = trained();
    whitener.set_bad_samples(BadSamples::Hold);
    let mut frozen = whitener.frozen().unwrap();
    let mut responses = vec![0.0; stimuli.len()];
    frozen.map(&stimuli, &mut responses).unwrap();
    let mut other = whitener.frozen().unwrap();
    other.hold(&frozen.held()).unwrap();
    let mut held = [0.0; CHANNELS];
    other.map(&[f64::NAN; CHANNELS], &mut held).unwrap();
    assert_eq!(bits_of(&held), bits_of(&responses[(ROWS - 1) * CHANNELS..]));
    assert!(other.hold(&[0.0]).is_err());
}

#[test]
fn one_group_of_all_channels_is_the_whitener_itself() {
    let mut alone = Whitener::<f64>::new(Matrix::identity(CHANNELS), WhitenerSettings::default()).unwrap();
    let mut grouped = GroupedWhitener::from(alone.clone());
    assert!(grouped.single().is_some() && trained().single().is_none());
    let stimuli = stimuli();
    let (mut first, mut second) = (vec![0.0; stimuli.len()], vec![0.0; stimuli.len()]);
    alone.whiten(&stimuli, &mut first).unwrap();
    grouped.whiten(&stimuli, &mut second).unwrap();
    assert_eq!(bits_of(&first), bits_of(&second));
}

#[test]
fn groups_must_hold_each_channel_once() {
    let fit = |groups: &[Vec<usize>], training: WhitenerTraining| {
        let watch = |_| ControlFlow::Continue(());
        let outcome =
            training.fit_groups::<f64>(groups, &WhitenerSettings::default(), &mut stream(0, 0), watch);
        outcome.err().unwrap().to_string()
    };
    for (groups, problem) in [
        (vec![], "at least one group"),
        (vec![vec![0, 1], vec![]], "groups[1]"),
        (vec![vec![0, 1], vec![1, 2, 3]], "channel 1 too large or once more"),
        (vec![vec![0, 1], vec![2, 3, 5]], "channel 5 too large or once more"),
        (vec![vec![0, 1]], "groups of all 5 channels"),
    ] {
        let error = fit(&groups, training());
        assert!(error.contains(problem), "{groups:?}: {error}");
    }
    let given = TrainingSynapses::Given(Matrix::identity(CHANNELS));
    let error = fit(&groups(), WhitenerTraining { synapses: given, ..training() });
    assert!(error.contains("synapses"), "{error}");
}
