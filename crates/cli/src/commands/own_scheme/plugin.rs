//! NCCL's network plugin with the schemes of this crate.

anabranch::nccl::plugin!(my_scheme::schemes());
