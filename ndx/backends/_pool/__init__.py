"""The caching allocator that all pooled backends share."""
