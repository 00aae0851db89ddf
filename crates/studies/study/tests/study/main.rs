//! Tests of `anabranch-study`: one program, with a module for each subject.

mod pcap;
mod recorded;
mod round_trip;
mod schemes;
mod sweep;
