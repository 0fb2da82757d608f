//! Links an extension module as each platform wants it.

fn main() {
    pyo3_build_config::add_extension_module_link_args();
}
