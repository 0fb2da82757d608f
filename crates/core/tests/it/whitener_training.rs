//! Holds training to what it promises: exact moments, white responses, a prior; and wrong settings to their names.

use leukos::contexts::stream;
use leukos::{
    ContextMoments, Exclusion, Matrix, Moments, RunningMoments, Span, Whitener, WhitenerSettings,
    WhitenerTraining, optimal_gains,
};

use crate::bridge::farthest;
use crate::whitener_streams::{
    covariance, distance_from_identity, fit, frozen, gaussian, largest, second_moment, trained_on,
    with_channel,
};

const CHANNELS: usize = 4;

fn recording(seed: u64, rows: usize) -> Vec<f64> {
    gaussian(&covariance(CHANNELS, seed), rows, seed).iter().map(|s| s + 20.0).collect()
}

fn moments_of(rows: &[f64]) -> Moments {
    let mut moments = Moments::new(CHANNELS);
    moments.update(rows).unwrap();
    moments
}

fn trained_on_recording(rows: &[f64]) -> Whitener {
    let training = WhitenerTraining { moments: vec![moments_of(rows)], ..Default::default() };
    fit(&training, WhitenerSettings::default())
}

#[test]
fn responses_to_the_training_data_are_white() {
    let rows = recording(1, 500);
    let responses = frozen(&trained_on_recording(&rows), &rows);
    let distance = distance_from_identity(&second_moment(&responses, CHANNELS));
    assert!(distance < 1e-6, "{distance:e}");
}

#[test]
fn with_a_dead_channel_the_others_are_white() {
    let rows = with_channel(&recording(1, 500), CHANNELS, 1, |_, _| 5.0);
    let mut whitener = trained_on_recording(&rows);
    let responses = frozen(&whitener, &rows);
    let live: Vec<f64> = responses.chunks_exact(CHANNELS).flat_map(|r| [r[0], r[2], r[3]]).collect();
    let distance = distance_from_identity(&second_moment(&live, 3));
    assert!(distance < 1e-6, "{distance:e}");
    assert_eq!(whitener.status().excluded, [(1, Exclusion::Constant)]);
}

#[test]
fn with_a_missing_direction_nothing_is_amplified() {
    let average: Vec<f64> = recording(1, 500)
        .chunks_exact(CHANNELS)
        .flat_map(|row| {
            let mean = row.iter().sum::<f64>() / CHANNELS as f64;
            row.iter().map(move |s| s - mean)
        })
        .collect();
    let repeated = with_channel(&recording(1, 500), CHANNELS, 3, |_, row| -2.0 * row[0]);
    for rows in [average, repeated] {
        let moment = second_moment(&frozen(&trained_on_recording(&rows), &rows), CHANNELS);
        assert!(largest(moment.as_slice()) < 1.0 + 1e-6, "{moment:?}");
        assert!((moment.trace() - 3.0).abs() < 1e-3, "white in the three directions there are: {moment:?}");
    }
}

#[test]
fn several_contexts_give_a_prior_and_all_their_samples_are_white() {
    let contexts = [covariance(CHANNELS, 1), covariance(CHANNELS, 2), covariance(CHANNELS, 3)];
    let rows: Vec<Vec<f64>> = contexts.iter().zip(5..).map(|(c, seed)| gaussian(c, 700, seed)).collect();
    let moments: Vec<Moments> = rows.iter().map(|rows| moments_of(rows)).collect();
    let own: Vec<Matrix> = moments.iter().map(|moments| moments.covariance().unwrap()).collect();
    let whitener: Whitener =
        fit(&WhitenerTraining { moments, ..Default::default() }, WhitenerSettings::default());
    let prior = whitener.prior().unwrap();
    let variances = own.iter().map(|c| c.trace() / CHANNELS as f64).sum::<f64>() / 3.0;
    let best: Vec<Vec<f64>> = own
        .iter()
        .map(|c| {
            let units = Matrix::from_fn(CHANNELS, CHANNELS, |i, j| c[(i, j)] / variances);
            optimal_gains(whitener.synapses(), &units, 1.0).unwrap()
        })
        .collect();
    let mean = |f: &dyn Fn(&[f64]) -> f64| best.iter().map(|gains| f(gains)).sum::<f64>() / 3.0;
    for i in 0..CHANNELS {
        assert!((prior.mean[i] - mean(&|g| g[i])).abs() < 1e-9);
        for j in 0..CHANNELS {
            let expected = mean(&|g| (g[i] - prior.mean[i]) * (g[j] - prior.mean[j]));
            assert!((prior.covariance[(i, j)] - expected).abs() < 1e-9);
        }
    }
    let responses = frozen(&whitener, &rows.concat());
    let distance = distance_from_identity(&second_moment(&responses, CHANNELS));
    assert!(distance < 1e-6, "{distance:e}");
    assert!(trained_on::<f64>(&[&covariance(CHANNELS, 1)], WhitenerSettings::default()).prior().is_none());
}

#[test]
fn wild_rows_are_left_out_of_moments() {
    let rows = recording(1, 2000);
    let mut wild = rows.clone();
    let spoiled = [7, 600, 601, 1999];
    for &row in &spoiled {
        wild[row * CHANNELS..(row + 1) * CHANNELS].iter_mut().for_each(|s| *s *= 1e4);
    }
    let kept = rows.chunks_exact(CHANNELS).enumerate().filter(|(row, _)| !spoiled.contains(row));
    let kept: Vec<f64> = kept.flat_map(|(_, row)| row.to_vec()).collect();
    let moments = moments_of(&wild);
    assert_eq!((moments.count(), moments.bad()), (1996, 4));
    assert_near(&moments, &two_passes(&kept));
    // A channel that is mostly silent is not wild when it speaks.
    let sparse = with_channel(&rows, CHANNELS, 2, |row, _| if row % 50 == 0 { 100.0 } else { 0.0 });
    assert_eq!(moments_of(&sparse).bad(), 0);
}

// ---- Moments ----

/// Mean and covariance the slow way.
fn two_passes(rows: &[f64]) -> (Vec<f64>, Matrix) {
    let count = (rows.len() / CHANNELS) as f64;
    let mean: Vec<f64> =
        (0..CHANNELS).map(|j| rows.iter().skip(j).step_by(CHANNELS).sum::<f64>() / count).collect();
    let centred: Vec<f64> =
        rows.chunks_exact(CHANNELS).flat_map(|row| row.iter().zip(&mean).map(|(s, m)| s - m)).collect();
    (mean, second_moment(&centred, CHANNELS))
}

fn assert_near(moments: &Moments, (mean, covariance): &(Vec<f64>, Matrix)) {
    assert!(farthest(moments.mean(), mean) < 1e-12 * largest(mean));
    let difference = farthest(moments.covariance().unwrap().as_slice(), covariance.as_slice());
    assert!(difference < 1e-12 * largest(covariance.as_slice()), "{difference:e}");
}

#[test]
fn moments_are_those_of_two_passes_in_any_split_and_order() {
    let rows = recording(1, 1000);
    let expected = two_passes(&rows);
    assert_near(&moments_of(&rows), &expected);
    let parts: Vec<Moments> = [0..1, 1..300, 300..300, 300..977, 977..1000]
        .map(|range| moments_of(&rows[range.start * CHANNELS..range.end * CHANNELS]))
        .to_vec();
    for order in [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 4, 0, 3, 1]] {
        let mut merged = Moments::new(CHANNELS);
        order.iter().for_each(|&part| merged.merge(&parts[part]).unwrap());
        assert_eq!(merged.count(), 1000);
        assert_near(&merged, &expected);
    }
}

#[test]
fn moments_leave_bad_rows_out_and_count_them() {
    let rows = recording(1, 600);
    let (mut spoiled, mut kept) = (rows.clone(), rows.clone());
    (spoiled[2 * CHANNELS], spoiled[300 * CHANNELS + 1]) = (f64::NAN, f64::INFINITY);
    kept.drain(300 * CHANNELS..301 * CHANNELS);
    kept.drain(2 * CHANNELS..3 * CHANNELS);
    let mut moments = moments_of(&spoiled);
    assert_eq!((moments.count(), moments.bad()), (598, 2));
    assert_near(&moments, &two_passes(&kept));
    moments.merge(&moments_of(&[f64::NAN; CHANNELS])).unwrap();
    assert_eq!((moments.count(), moments.bad()), (598, 3));
    assert!(moments.merge(&Moments::new(CHANNELS + 1)).unwrap_err().to_string().contains("5 channels"));
    assert!(moments.update(&[1.0; CHANNELS + 1]).is_err());
    assert!(Moments::new(CHANNELS).covariance().is_err());
}

#[test]
fn a_stream_of_contexts_is_summed_up_to_the_same_bits_however_it_is_cut() {
    let mut rows = recording(1, 1500);
    rows[700 * CHANNELS + 2] = f64::NAN;
    // Context b interrupts a after 300 rows and has 513 of them.
    let context_of = |row: usize| if (300..813).contains(&row) { "b" } else { "a" };
    let [a, b] = ["a", "b"].map(|name| {
        let own = rows.chunks_exact(CHANNELS).enumerate().filter(|(row, _)| context_of(*row) == name);
        moments_of(&own.flat_map(|(_, row)| row).copied().collect::<Vec<_>>())
    });
    for cut in [1, 7, 256, 300] {
        let mut contexts = ContextMoments::new(CHANNELS);
        for (i, rows) in rows.chunks(cut * CHANNELS).enumerate() {
            for (j, row) in rows.chunks_exact(CHANNELS).enumerate() {
                contexts.update(context_of(i * cut + j), row).unwrap();
            }
        }
        assert_eq!(contexts.finish().unwrap(), [("a".into(), a.clone()), ("b".into(), b.clone())]);
        let mut running = RunningMoments::new(CHANNELS);
        rows.chunks(cut * CHANNELS).for_each(|rows| running.update(rows).unwrap());
        assert_eq!(running.finish().unwrap(), moments_of(&rows), "cut into {cut} rows");
    }
    assert!(ContextMoments::new(CHANNELS).update("a", &[1.0; CHANNELS + 1]).is_err());
    assert!(RunningMoments::new(0).update::<f64>(&[]).is_err());
}

// ---- Settings ----

#[test]
fn wrong_settings_are_refused_by_name() {
    let default = WhitenerSettings::default;
    let samples = |x| Some(Span::Samples(x));
    let table = [
        ("sample_rate", WhitenerSettings { sample_rate: Some(0.0), ..default() }),
        ("sample_rate", WhitenerSettings { sample_rate: Some(f64::NAN), ..default() }),
        ("time_constant", WhitenerSettings { time_constant: samples(0.5), ..default() }),
        ("time_constant", WhitenerSettings { time_constant: samples(f64::INFINITY), ..default() }),
        ("time_constant", WhitenerSettings { time_constant: Some(Span::Seconds(1.0)), ..default() }),
        ("synapse_time_constant", WhitenerSettings { synapse_time_constant: samples(0.0), ..default() }),
        ("strength", WhitenerSettings { strength: -0.1, ..default() }),
        ("strength", WhitenerSettings { strength: 1.1, ..default() }),
        ("saturation", WhitenerSettings { saturation: Some(0.0), ..default() }),
        ("update_every", WhitenerSettings { update_every: Some(0), ..default() }),
        ("floor", WhitenerSettings { floor: 0.0, ..default() }),
        ("floor", WhitenerSettings { floor: 0.6, ..default() }),
        ("exclude_above", WhitenerSettings { exclude_above: Some(1.0), ..default() }),
        ("exclude_above", WhitenerSettings { exclude_above: Some(f64::NAN), ..default() }),
    ];
    let training = WhitenerTraining { moments: vec![moments_of(&recording(1, 50))], ..Default::default() };
    for (argument, settings) in table {
        let named = format!("{argument}: ");
        let cold = Whitener::<f64>::new(Matrix::identity(2), settings.clone()).err().unwrap().to_string();
        assert!(cold.starts_with(&named), "{settings:?}: {cold}");
        let watch = |_| std::ops::ControlFlow::Continue(());
        let warm = training.fit::<f64>(settings, &mut stream(0, 0), watch).err().unwrap().to_string();
        assert_eq!(cold, warm);
    }
}

#[test]
fn times_in_seconds_need_a_sample_rate_and_then_mean_samples() {
    let seconds = WhitenerSettings { time_constant: Some(Span::Seconds(2.0)), ..WhitenerSettings::default() };
    let error = seconds.time_constants(3).unwrap_err().to_string();
    assert!(error.contains("sample rate"), "{error}");
    let times = WhitenerSettings { sample_rate: Some(250.0), ..seconds }.time_constants(3).unwrap();
    assert_eq!((times.shortest, times.synapses), (500.0, None));
    let usual = |channels| WhitenerSettings::default().time_constants(channels).unwrap().shortest;
    assert_eq!((usual(1), usual(16), usual(100)), (32.0, 32.0, 200.0));
}

#[test]
fn training_without_anything_to_learn_from_is_refused() {
    let refused = |moments: Vec<Moments>| {
        let training = WhitenerTraining { moments, ..Default::default() };
        let watch = |_| std::ops::ControlFlow::Continue(());
        let settings = WhitenerSettings::default();
        training.fit::<f64>(settings, &mut stream(0, 0), watch).err().unwrap().to_string()
    };
    assert!(refused(vec![]).contains("contexts"));
    assert!(refused(vec![Moments::new(CHANNELS)]).contains("samples"));
    assert!(refused(vec![moments_of(&[4.0; 4 * CHANNELS])]).contains("varies"));
    assert!(refused(vec![moments_of(&recording(1, 9)), Moments::new(2)]).contains("channels"));
}

#[test]
fn moments_of_a_constant_have_no_variance() {
    for (level, rows) in [(3.0, 5), (0.1, 300), (1e8 + 0.3, 1000)] {
        let moments = moments_of(&vec![level; rows * CHANNELS]);
        assert_eq!(largest(moments.covariance().unwrap().as_slice()), 0.0, "{level} in {rows} rows");
    }
}
