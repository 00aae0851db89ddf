//! From rows to statistics, tables, figures and a self-contained page.
