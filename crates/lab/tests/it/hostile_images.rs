//! Tests what `leukos contexts` does with images it cannot use, folders without any, wrong flags and Ctrl-C.

use std::process::Output;
#[cfg(target_os = "linux")]
use std::process::Stdio;

use image::{DynamicImage, ImageBuffer, ImageFormat, Luma, Rgba};
use leukos_lab::data::{Photograph, read_van_hateren};
use rand::RngExt;

use crate::bench::{Bench, leukos, stderr};
use crate::photographs::{add, colour, encoded, grey16, van_hateren};

const FORMATS: [(&str, ImageFormat); 4] = [
    ("png", ImageFormat::Png),
    ("jpg", ImageFormat::Jpeg),
    ("tif", ImageFormat::Tiff),
    ("webp", ImageFormat::WebP),
];

fn contexts(bench: &Bench, arguments: &[&str]) -> Output {
    let out = bench.path("covs.npy");
    leukos()
        .arg("contexts")
        .arg(bench.path("photos"))
        .arg("--out")
        .arg(out)
        .args(arguments)
        .output()
        .expect("the program starts")
}

const SMALL: [&str; 6] = ["--patch", "2x2", "--spacing", "2", "--samples", "300"];

/// A PNG file that says it has so many pixels and holds next to none of them.
fn announced(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = encoded(grey16(8, 8, 0), ImageFormat::Png);
    bytes[16..20].copy_from_slice(&width.to_be_bytes());
    bytes[20..24].copy_from_slice(&height.to_be_bytes());
    let checksum = crc32(&bytes[12..29]);
    bytes[29..33].copy_from_slice(&checksum.to_be_bytes());
    bytes
}

/// The checksum of a chunk of a PNG file.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 * (crc & 1)))
    })
}

#[test]
fn every_image_that_gives_no_context_is_named_with_its_reason() {
    let bench = Bench::new();
    add(&bench, "good.png", encoded(colour(40, 30, 1), ImageFormat::Png));
    add(&bench, "tiny.png", encoded(colour(2, 30, 1), ImageFormat::Png));
    add(&bench, "flat.png", encoded(ImageBuffer::from_pixel(30, 30, Luma([90_u8])), ImageFormat::Png));
    let stripes = ImageBuffer::from_fn(30, 30, |x, _| Luma([if x % 2 == 0 { 20_u8 } else { 200 }]));
    add(&bench, "stripes.png", encoded(stripes, ImageFormat::Png));
    let ghost =
        ImageBuffer::from_fn(30, 30, |x, y| Rgba([x as u8, y as u8, 7, if x == 9 { 254 } else { 255 }]));
    add(&bench, "ghost.png", encoded(ghost, ImageFormat::Png));
    add(&bench, "huge.png", announced(20_000, 20_000));
    add(&bench, "garbage.jpg", b"this is no photograph at all");
    add(&bench, "empty.webp", b"");
    let floats = DynamicImage::from(colour(30, 30, 2)).to_rgb32f();
    add(&bench, "floats.tif", encoded(floats, ImageFormat::Tiff));
    let imc = van_hateren(|y, x| (x + y) as u16);
    add(&bench, "short.imc", &imc[..imc.len() - 1]);
    add(&bench, "long.iml", [&imc[..], b"\0"].concat());
    for name in ["notes.txt", ".shadow.png", "movie.mp4"] {
        add(&bench, name, b"not for us");
    }
    std::fs::create_dir(bench.path("photos/more.png")).expect("a folder");

    let output = contexts(&bench, &[&SMALL[..], &["--condition", "none"]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let said = stderr(&output);
    for part in [
        "1 of 11 images kept",
        "1 singular: samples do not vary in every direction (stripes.png)",
        "1 too small for the patch (tiny.png)",
        "1 constant (flat.png)",
        "ghost.png: expected opaque pixels",
        "huge.png: expected an image that takes 512 MiB at most, got 20000 x 20000 pixels that take 762 MiB",
        "empty.webp, garbage.jpg: expected a PNG, JPEG, TIFF or WebP image, got something else",
        "floats.tif: expected 8 or 16 bits a sample, got Rgb32F",
        "short.imc: the file is cut short: expected 1536 x 1024 pixels in 3145728 bytes, got 3145727",
        "long.iml: expected 1536 x 1024 pixels in 3145728 bytes, got 3145729",
        "4 ignored, because their names are not those of images (.shadow.png, more.png, movie.mp4, notes.txt)",
    ] {
        assert!(said.contains(part), "{part} is not in\n{said}");
    }
    let table = std::fs::read_to_string(bench.path("covs.csv")).expect("a table");
    assert_eq!(table.lines().count(), 12, "{table}");
    assert!(table.contains("flat.png,,constant,,\n"), "{table}");
    assert!(table.contains("ghost.png,,\"unusable: expected opaque pixels, but"), "{table}");
}

#[test]
fn an_image_that_is_cut_short_is_left_out_in_every_format() {
    let bench = Bench::new();
    add(&bench, "good.png", encoded(colour(40, 30, 1), ImageFormat::Png));
    for (extension, format) in FORMATS {
        let bytes = encoded(colour(40, 30, 1), format);
        for share in [5, 50, 95] {
            add(&bench, &format!("{share}.{extension}"), &bytes[..bytes.len() * share / 100]);
        }
    }
    let output = contexts(&bench, &SMALL);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("1 of 13 images kept"), "{}", stderr(&output));
}

#[test]
fn damaged_bytes_never_crash_a_reader() {
    let mut rng = leukos::contexts::stream(11, 0);
    for (_, format) in FORMATS {
        let whole = encoded(colour(20, 16, 3), format);
        for _ in 0..150 {
            let mut bytes = whole.clone();
            for _ in 0..rng.random_range(1..6) {
                let at = rng.random_range(0..bytes.len());
                bytes[at] = rng.random();
            }
            // Some damage goes unnoticed, but none may panic or take all memory.
            let _ = Photograph::open(&bytes).and_then(Photograph::read);
        }
    }
    for length in [0, 1, 2, 1536, 3_145_726, 3_145_727, 3_145_729, 6_291_456] {
        let complaint = read_van_hateren(&vec![7; length]).expect_err("a wrong size");
        assert!(format!("{complaint}").contains(&format!("got {length}")), "{complaint}");
    }
}

#[test]
fn a_folder_that_is_missing_empty_or_without_a_usable_image_is_a_failure_that_says_why() {
    let bench = Bench::new();
    let fails = |part: &str| {
        let output = contexts(&bench, &SMALL);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("photos") && said.contains(part), "{part} is not in\n{said}");
        assert!(!bench.path("covs.npy").exists() && !bench.path("covs.csv").exists());
    };
    fails("expected a folder of images, but nothing with this name exists");
    bench.write("photos", "a file");
    fails("expected a folder of images, got a file");
    std::fs::remove_file(bench.path("photos")).expect("the file");
    std::fs::create_dir(bench.path("photos")).expect("a folder");
    fails("none of 0 does: it is empty");
    add(&bench, "notes.txt", b"no image");
    fails("1 ignored, because their names are not those of images (notes.txt)");
    add(&bench, "bad.png", b"no image");
    fails("bad.png: expected a PNG");
}

#[test]
fn wrong_flags_are_wrong_usage_and_named() {
    let bench = Bench::new();
    add(&bench, "good.png", encoded(colour(40, 30, 1), ImageFormat::Png));
    let wrong: [(&[&str], &str); 16] = [
        (&["--patch", "5"], "invalid value '5' for '--patch <WIDTHxHEIGHT>': expected WIDTHxHEIGHT"),
        (&["--patch", "0x5"], "expected WIDTHxHEIGHT, such as 5x5 or 16x1"),
        (&["--patch", "1x1"], "expected 2 to 1024 pixels, got 1"),
        (&["--patch", "60x60"], "expected 2 to 1024 pixels, got 3600"),
        (&["--spacing", "0"], "'--spacing <PIXELS>'"),
        (&["--sampling", "often"], "'--sampling <SAMPLING>'"),
        (&["--samples", "0"], "'--samples <T>'"),
        (&["--samples", "25"], "--samples: expected more than the 25 pixels of a patch, got 25"),
        (&["--condition", "1"], "'--condition <X|none>': expected a number above 1, or none"),
        (&["--condition", "NaN"], "expected a number above 1, or none"),
        (&["--norm", "-2"], "'--norm <X|none>': expected a number above 0, or none"),
        (&["--norm", "inf"], "expected a number above 0, or none"),
        (&["--step", "4"], "--step: expected --sampling walk"),
        (
            &["--sampling", "every", "--samples", "99"],
            "--samples: expected --sampling independent or walk, got every",
        ),
        (&["--count", "3"], "--count: does not apply to contexts from"),
        (&["--jobs", "0"], "'--jobs <J>'"),
    ];
    for (arguments, part) in wrong {
        let output = contexts(&bench, arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(part), "{part} is not in\n{}", stderr(&output));
    }
    for (arguments, part) in [
        (
            vec!["fields", "--out", "x.npy", "--samples", "99"],
            "--samples: does not apply to contexts from fields",
        ),
        (vec!["fields", "--out", "x.npy", "--norm", "none"], "--norm: expected a number"),
        (
            vec!["synthetic", "--out", "x.npy", "--patch", "5x5"],
            "--patch: does not apply to contexts from synthetic",
        ),
        (vec!["fields", "--out", "x.npz"], "'--out <COVS.npy>': expected the name of a .npy file"),
        (vec!["fields"], "--out <COVS.npy>"),
    ] {
        let output = leukos().arg("contexts").args(&arguments).output().expect("the program starts");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(part), "{part} is not in\n{}", stderr(&output));
    }
}

#[test]
fn the_folder_of_images_is_no_place_for_their_picture() {
    let bench = Bench::new();
    add(&bench, "good.png", encoded(colour(40, 30, 1), ImageFormat::Png));
    let mut call = leukos();
    call.current_dir(bench.path("photos")).args(["contexts", ".", "--out", "covs.npy"]);
    let output = call.output().expect("the program starts");
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let said = stderr(&output);
    assert!(said.contains("--out: expected a place outside the folder ., got covs.npy"), "{said}");
}

#[test]
#[cfg(unix)]
fn a_name_full_of_control_letters_and_markup_spoils_neither_words_nor_picture() {
    let bench = Bench::new();
    let name = "a\u{1b}[2J\n*b*_c^<&\"'\\.png";
    add(&bench, name, encoded(colour(40, 30, 1), ImageFormat::Png));
    let output = contexts(&bench, &[&SMALL[..], &["--condition", "none"]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(!stderr(&output).contains('\u{1b}'));
    let svg = std::fs::read_to_string(bench.path("covs.svg")).expect("a picture");
    assert!(svg.contains("&lt;&amp;&quot;'\\.png"), "{svg}");
    assert!(image::open(bench.path("covs.png")).is_ok());
    let table = std::fs::read_to_string(bench.path("covs.csv")).expect("a table");
    assert_eq!(table.lines().count(), 2, "{table}");
}

/// Whether a process has taken SIGINT into its own hands.
#[cfg(target_os = "linux")]
fn listens(id: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:\t"));
    caught.and_then(|mask| u64::from_str_radix(mask, 16).ok()).is_some_and(|mask| mask & 2 != 0)
}

#[test]
#[cfg(target_os = "linux")]
fn ctrl_c_in_the_middle_of_an_image_leaves_nothing() {
    let bench = Bench::new();
    // A million patches of 1024 pixels: far more work than anyone waits for.
    add(&bench, "good.png", encoded(colour(20, 20, 1), ImageFormat::Png));
    add(&bench, "wide.imc", van_hateren(|y, x| ((x * 31 + y * 57) % 5003) as u16));
    let child = leukos()
        .arg("contexts")
        .arg(bench.path("photos"))
        .args(["--patch", "32x32", "--spacing", "1", "--sampling", "every", "--out"])
        .arg(bench.path("covs.npy"))
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let begin = std::time::Instant::now();
    while !listens(child.id()) {
        assert!(begin.elapsed() < std::time::Duration::from_secs(60), "it does not listen to Ctrl-C");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let sent = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()));
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(stderr(&output).contains("interrupted: nothing was written"), "{}", stderr(&output));
    let left: Vec<_> = std::fs::read_dir(bench.path(".")).expect("a folder").collect();
    assert_eq!(left.len(), 1, "{left:?}");
}
