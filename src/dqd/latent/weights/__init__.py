"""The numbers of networks: files, checked; conversion and downloads."""
