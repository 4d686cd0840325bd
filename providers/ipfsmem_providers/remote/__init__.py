"""A folder on another machine as a provider, with the layout of a shared folder."""
