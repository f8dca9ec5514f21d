"""The two ways to run traversals: in compiled code over a tree of histories, or over OpenSpiel's states."""
