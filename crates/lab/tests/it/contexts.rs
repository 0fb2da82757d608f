//! Tests `leukos contexts`: every kind of image, what is left out and why, and the same bits whatever the threads.

use std::process::Output;

use image::{DynamicImage, ImageFormat};
use leukos::Matrix;
use leukos_lab::data::read_stack;

use crate::bench::{Bench, leukos, stderr};
use crate::photographs::{Rows, add, colour, covariance, encoded, grey16, luminances, van_hateren};

/// `leukos contexts photos --out covs.npy` with these further arguments.
fn contexts(bench: &Bench, arguments: &[&str]) -> Output {
    make(bench, "photos", "covs.npy", arguments)
}

fn make(bench: &Bench, folder: &str, out: &str, arguments: &[&str]) -> Output {
    leukos()
        .arg("contexts")
        .arg(bench.path(folder))
        .arg("--out")
        .arg(bench.path(out))
        .args(arguments)
        .output()
        .expect("the program starts")
}

/// Every place, any condition, the units of the image: nothing between the image and its covariance.
const PLAIN: [&str; 8] = ["--patch", "3x2", "--spacing", "2", "--sampling", "every", "--norm", "none"];
const ANY: [&str; 2] = ["--condition", "none"];

fn plain(bench: &Bench) -> Vec<Matrix> {
    let output = contexts(bench, &[&PLAIN[..], &ANY].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    read_stack(&bench.path("covs.npy")).expect("a stack").contexts.covariances().to_vec()
}

/// The largest difference, relative to the largest entry.
fn apart(found: &Matrix, expected: &Rows) -> f64 {
    let largest = expected.iter().flatten().fold(0.0_f64, |most, x| most.max(x.abs()));
    let n = expected.len();
    let pairs = (0..n).flat_map(|i| (0..n).map(move |j| (i, j)));
    pairs.map(|(i, j)| (found[(i, j)] - expected[i][j]).abs()).fold(0.0, f64::max) / largest
}

#[test]
fn every_format_and_depth_gives_the_covariance_of_its_luminances() {
    let bench = Bench::new();
    let (photo, deep) = (DynamicImage::from(colour(40, 30, 1)), DynamicImage::from(grey16(40, 30, 2)));
    let (grey, alpha) = (DynamicImage::from(photo.to_luma8()), DynamicImage::from(photo.to_rgba8()));
    let deep_colour = DynamicImage::from(DynamicImage::from(grey16(40, 30, 3)).to_rgb16());
    let images = [
        ("a-colour.png", &photo, ImageFormat::Png),
        ("b-colour.TIFF", &photo, ImageFormat::Tiff),
        ("c-colour.webp", &photo, ImageFormat::WebP),
        ("d-grey.png", &grey, ImageFormat::Png),
        ("e-grey16.png", &deep, ImageFormat::Png),
        ("f-grey16.tif", &deep, ImageFormat::Tiff),
        ("g-colour16.png", &deep_colour, ImageFormat::Png),
        ("h-opaque.png", &alpha, ImageFormat::Png),
    ];
    for (name, image, format) in &images {
        add(&bench, name, encoded((*image).clone(), *format));
    }
    // What a lossy file holds is what its decoder says.
    for (name, image) in [("i-colour.jpg", &photo), ("j-grey.JPEG", &grey)] {
        add(&bench, name, encoded(image.clone(), ImageFormat::Jpeg));
    }
    let found = plain(&bench);
    assert_eq!(found.len(), 10);
    let decoded = |name: &str| image::open(bench.path(&format!("photos/{name}"))).expect("an image");
    let lossy = ["i-colour.jpg", "j-grey.JPEG"].map(decoded);
    let all = images.iter().map(|(_, image, _)| *image).chain(&lossy);
    for (found, image) in found.iter().zip(all) {
        let expected = covariance(&luminances(image), [3, 2], 2);
        assert!(apart(found, &expected) < 1e-11, "{}", apart(found, &expected));
    }
}

#[test]
fn van_hateren_images_are_linear_and_big_endian_in_both_formats() {
    let bench = Bench::new();
    let level = |y: usize, x: usize| ((x * 7919 + y * 104_729) % 6151 + x / 4) as u16;
    add(&bench, "imk00001.imc", van_hateren(level));
    add(&bench, "imk00002.IML", van_hateren(level));
    let arguments =
        [&["--patch", "2x1", "--spacing", "3", "--sampling", "every", "--norm", "none"][..], &ANY];
    let output = contexts(&bench, &arguments.concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let stack = read_stack(&bench.path("covs.npy")).expect("a stack").contexts;
    let rows: Rows = (0..1024).map(|y| (0..1536).map(|x| f64::from(level(y, x))).collect()).collect();
    let expected = covariance(&rows, [2, 1], 3);
    assert!(apart(&stack.covariances()[0], &expected) < 1e-11);
    assert_eq!(stack.covariances()[0], stack.covariances()[1]);
}

#[test]
fn a_large_mean_costs_no_digits() {
    let bench = Bench::new();
    // Levels 65000 to 65007: the variance is 1e-8 of the squared mean.
    let image = image::ImageBuffer::from_fn(50, 40, |x, y| {
        image::Luma([65000 + ((x * x * 31 + y * 17 + x * y * 5) % 8) as u16])
    });
    let image = DynamicImage::from(image);
    add(&bench, "bright.png", encoded(image.clone(), ImageFormat::Png));
    let found = plain(&bench);
    // Here the distance between levels is 1e-5 of a level, so luminances of 1e-16 are known to 1e-11 of it.
    assert!(apart(&found[0], &covariance(&luminances(&image), [3, 2], 2)) < 1e-9);
}

#[test]
fn a_photograph_is_turned_as_its_camera_says() {
    let bench = Bench::new();
    let upright = encoded(colour(40, 24, 5), ImageFormat::Jpeg);
    // Orientation 6 in an EXIF segment behind the start marker: turn clockwise.
    let exif = b"\xff\xe1\x00\x22Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
    let turned = [&upright[..2], &exif[..], &upright[2..]].concat();
    add(&bench, "a.jpg", &turned);
    let pixels = image::load_from_memory(&upright).expect("an image").rotate90();
    add(&bench, "b.png", encoded(pixels, ImageFormat::Png));
    add(&bench, "c.jpg", &upright);
    let found = plain(&bench);
    assert_eq!(found[0], found[1]);
    assert_ne!(found[0], found[2]);
}

#[test]
fn covariances_are_scaled_to_the_norm_and_kept_below_the_condition() {
    let bench = Bench::new();
    for (i, smoothness) in [0.1, 0.95, 0.3, 0.99].into_iter().enumerate() {
        let levels = crate::photographs::texture(60, 60, smoothness, i as u64);
        let image = image::ImageBuffer::from_fn(60, 60, |x, y| {
            image::Luma([crate::photographs::word(levels[y as usize][x as usize])])
        });
        add(&bench, &format!("{i}.png"), encoded(image, ImageFormat::Png));
    }
    let arguments =
        ["--patch", "3x3", "--spacing", "1", "--samples", "2000", "--norm", "7", "--condition", "10"];
    let output = contexts(&bench, &arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("2 of 4 images kept"), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("2 with a condition number of 10 or more (lowest "),
        "{}",
        stderr(&output)
    );
    let stack = read_stack(&bench.path("covs.npy")).expect("a stack").contexts;
    for covariance in stack.covariances() {
        let spectrum = leukos_lab::contexts::Spectrum::of(covariance).expect("eigenvalues");
        assert!((spectrum.most - 7.0).abs() < 1e-12, "{spectrum:?}");
        assert!(spectrum.condition() < 10.0);
    }
    let table = std::fs::read_to_string(bench.path("covs.csv")).expect("a table");
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[1].starts_with("0.png,0,,") && lines[3].starts_with("2.png,1,,"), "{table}");
    for line in [lines[2], lines[4]] {
        assert!(line.contains(",,condition too high,"), "{table}");
        let condition: f64 = line.split(',').nth(3).expect("a cell").parse().expect("a number");
        assert!(condition >= 10.0, "{table}");
    }
}

#[test]
fn threads_and_other_images_change_no_bit_and_the_seed_does() {
    let bench = Bench::new();
    for i in 0..5 {
        add(&bench, &format!("{i}.png"), encoded(colour(50, 40, i), ImageFormat::Png));
    }
    let arguments = ["--patch", "4x1", "--spacing", "1", "--samples", "400", "--quiet"];
    let bytes = |more: &[&str]| {
        let output = contexts(&bench, &[&arguments[..], &ANY, more].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(stderr(&output), "");
        ["covs.npy", "covs.csv"].map(|name| std::fs::read(bench.path(name)).expect("a file"))
    };
    let one = bytes(&["--jobs", "1"]);
    assert!(one == bytes(&["--jobs", "3"]));
    assert!(one == bytes(&[]));
    assert!(one[0] != bytes(&["--seed", "1"])[0]);
    assert!(one[0] != bytes(&["--sampling", "walk", "--step", "3"])[0]);
    std::fs::remove_file(bench.path("photos/0.png")).expect("a file less");
    let [fewer, _] = bytes(&[]);
    let context = 4 * 4 * 8;
    assert_eq!(fewer[fewer.len() - 4 * context..], one[0][one[0].len() - 4 * context..]);
}

/// A wide ramp from black to white with some noise, linear in its levels.
fn ramp(bench: &Bench) {
    let level = |y: usize, x: usize| (40 * x + (x * 31 + y * 57) % 13) as u16;
    add(bench, "ramp.imc", van_hateren(level));
}

fn largest_eigenvalue(bench: &Bench, arguments: &[&str]) -> f64 {
    let shared = ["--patch", "2x1", "--spacing", "1", "--norm", "none"];
    let output = contexts(bench, &[&shared[..], &ANY, arguments].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let stack = read_stack(&bench.path("covs.npy")).expect("a stack").contexts;
    leukos_lab::contexts::Spectrum::of(&stack.covariances()[0]).expect("eigenvalues").most
}

#[test]
fn independent_patches_lie_anywhere_and_a_walk_stays_near() {
    let bench = Bench::new();
    ramp(&bench);
    // Both pixels vary alike, over 1536 columns of 40 levels each.
    let everywhere = 2.0 * (40.0 * 1536.0_f64).powi(2) / 12.0;
    let every = largest_eigenvalue(&bench, &["--sampling", "every"]);
    assert!((every / everywhere - 1.0).abs() < 0.01, "{every}");
    // The variance of 4000 uniform numbers has a relative standard deviation of sqrt(0.8 / 4000) = 0.014.
    let independent = largest_eigenvalue(&bench, &["--samples", "4000"]);
    assert!((independent / everywhere - 1.0).abs() < 0.07, "{independent}");
    // In 100 steps of one column a walk spans 100 columns at most, and the variance of numbers within a span is a
    // quarter of its square at most.
    let walk = largest_eigenvalue(&bench, &["--sampling", "walk", "--samples", "100", "--step", "1"]);
    assert!(walk > 0.0 && walk < 2.0 * (41.0 * 101.0_f64).powi(2) / 4.0, "{walk}");
    // Steps of 400 columns soon have been everywhere: the walk forgets its place in about 12 steps, which leaves it
    // some 2000 independent samples.
    let long = largest_eigenvalue(&bench, &["--sampling", "walk", "--samples", "40000", "--step", "400"]);
    assert!((long / everywhere - 1.0).abs() < 0.1, "{long}");
}

#[test]
fn the_stack_feeds_reproduce() {
    let bench = Bench::new();
    for i in 0..12 {
        add(&bench, &format!("{i:02}.png"), encoded(colour(60, 50, i), ImageFormat::Png));
    }
    let output = contexts(&bench, &["--patch", "3x2", "--spacing", "1", "--samples", "2000"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let stack = bench.path("covs.npy");
    let output = bench.reproduce("natural", &["--quiet", "--contexts", stack.to_str().expect("a path")]);
    assert!(output.status.success(), "{}", stderr(&output));
    let origin = bench.results()["figures"]["natural"]["contexts"].to_string();
    assert!(origin.contains("12 covariances, N = 6") && origin.contains("covs.npy"), "{origin}");
    shows_images_above_covariances(&bench);
}

fn shows_images_above_covariances(bench: &Bench) {
    let svg = std::fs::read_to_string(bench.path("covs.svg")).expect("a picture");
    assert_eq!(svg.matches("<image ").count(), 24, "an image and a covariance for each context");
    for part in [">00.png<", ">11.png<", "condition ", "12 of 12 contexts; patches of 3 × 2 pixels"] {
        assert!(svg.contains(part), "{part}");
    }
    let png = image::open(bench.path("covs.png")).expect("a picture").to_luma8();
    // A renderer that could not read the images inside would leave the paper white.
    let inked = png.pixels().filter(|pixel| pixel.0[0] < 250).count();
    assert!(inked * 5 > png.pixels().count(), "{inked} of {} pixels", png.pixels().count());
}

#[test]
fn generated_contexts_are_those_of_the_library() {
    use leukos::contexts::{Fields, Patch, Synthetic, stream};
    let bench = Bench::new();
    let make = |source: &str, arguments: &[&str]| {
        let out = bench.path("covs.npy");
        let output = leukos().args(["contexts", source, "--out"]).arg(&out).args(arguments).output();
        let output = output.expect("the program starts");
        assert!(output.status.success(), "{}", stderr(&output));
        (read_stack(&out).expect("a stack").contexts, stderr(&output))
    };
    let (found, said) = make("fields", &["--patch", "16x1", "--count", "3", "--seed", "4"]);
    let fields = Fields { contexts: 3, ..Fields::one_dimensional() };
    let drawn = fields.draw(&mut stream(4, 0)).expect("fields");
    assert_eq!(found.covariances(), drawn.contexts.covariances());
    assert!(said.contains(&format!("3 of {} fields kept", drawn.drawn)), "{said}");
    let (found, _) = make("fields", &["--patch", "2x3", "--spacing", "2", "--count", "2", "--norm", "4"]);
    let patch = Patch { height: 3, width: 2, spacing: 2 };
    let fields = Fields { contexts: 2, patch, norm: 4.0, ..Fields::two_dimensional() };
    assert_eq!(found.covariances(), fields.draw(&mut stream(0, 0)).expect("fields").contexts.covariances());
    let (found, _) = make("synthetic", &["--seed", "9"]);
    let drawn = Synthetic::published().draw(&mut stream(9, 0)).expect("contexts");
    assert_eq!(found.covariances(), drawn.contexts.covariances());
}
