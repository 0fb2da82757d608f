//! Makes small sound recordings of each format for the fuzzer to begin with.

/// The folder, the name and the bytes of each seed; the first four bytes are the knobs of `readers.rs`.
pub fn recordings() -> Vec<(&'static str, String, Vec<u8>)> {
    [raw(), npy(), csv(), edf()].concat()
}

type Seeds = Vec<(&'static str, String, Vec<u8>)>;

fn seed(folder: &'static str, name: impl ToString, knobs: [u8; 4], bytes: &[u8]) -> Seeds {
    vec![(folder, name.to_string(), [&knobs[..], bytes].concat())]
}

fn raw() -> Seeds {
    let bytes: Vec<u8> = (0..=255).collect();
    (0..4)
        .flat_map(|kind| seed("raw", kind, [7, 2, kind, kind], &bytes[..128 - 8 * usize::from(kind)]))
        .collect()
}

fn npy() -> Seeds {
    let arrays =
        [("<i2", "False", "(20, 3)", 120), (">i4", "True", "(10, 3)", 120), ("<f4", "True", "(9, 2)", 72)];
    let more = [(">f8", "False", "(7,)", 56), ("<f8", "False", "(0, 4)", 0)];
    let array = |(kind, order, shape, length): (&str, &str, &str, usize)| {
        let text = format!("{{'descr': '{kind}', 'fortran_order': {order}, 'shape': {shape}, }}\n");
        let length_field = (text.len() as u16).to_le_bytes();
        let data: Vec<u8> = (0..length).map(|i| (i * 37 % 251) as u8).collect();
        let bytes = [b"\x93NUMPY\x01\x00", &length_field[..], text.as_bytes(), &data].concat();
        seed("npy", format!("{}-{length}", &kind[1..]), [3, 4, 0, 0], &bytes)
    };
    arrays.into_iter().chain(more).flat_map(array).collect()
}

fn csv() -> Seeds {
    let texts = [
        ("plain", 0, "1,2\n3,4\n5,6\n"),
        ("header", 0, "a,b\r\n1.5,-2e3\r\n,nan\r\n\r\n"),
        ("label", 1, "\u{feff}a,\"s\",b\n1,rest,2\n\"3\",\"x \"\"y\"\", z\",inf\n"),
        ("first", 2, "rest,1,2\nmove,3,4\n"),
        ("third", 3, "1,2,rest\n3,4,"),
        ("one", 0, "x\n1\n\"\"\n3"),
    ];
    texts
        .into_iter()
        .flat_map(|(name, label, text)| seed("csv", name, [3, 2, label, 0], text.as_bytes()))
        .collect()
}

/// Two channels with annotations between them.
fn edf() -> Seeds {
    let file = |kind: &str, size: usize, records: &str| {
        let mut bytes = if size == 2 { b"0       ".to_vec() } else { b"\xFFBIOSEMI".to_vec() };
        let mut fields = vec![(String::new(), 176), ("1024".into(), 8), (format!("{kind}+C"), 44)];
        fields.extend([(records.to_owned(), 8), ("0.5".into(), 8), ("3".into(), 4)]);
        let limits = ["-100", "100", "-32768", "32767"];
        fields.extend(["Fp1", &format!("{kind} Annotations"), "Cz"].map(|label| (label.to_owned(), 16)));
        fields.extend(std::iter::repeat_n((String::new(), 88), 3));
        limits.iter().for_each(|limit| fields.extend(std::iter::repeat_n((limit.to_string(), 8), 3)));
        fields.extend(std::iter::repeat_n((String::new(), 80), 3));
        fields.extend(["4", "2", "4"].map(|samples| (samples.to_owned(), 8)));
        fields.extend(std::iter::repeat_n((String::new(), 32), 3));
        fields.iter().for_each(|(text, width)| bytes.extend(format!("{text:<width$}").bytes()));
        bytes.extend((0..3 * 10 * size).map(|i| (i * 37 % 251) as u8));
        bytes
    };
    let known = seed("edf", "edf", [3, 2, 0, 0], &file("EDF", 2, "3"));
    let unknown = seed("edf", "unknown", [3, 2, 0, 0], &file("EDF", 2, "-1"));
    [known, unknown, seed("edf", "bdf", [3, 2, 0, 0], &file("BDF", 3, "3"))].concat()
}
