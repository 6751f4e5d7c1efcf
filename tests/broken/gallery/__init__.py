"""Small kernels, each wrong in one way (`broken::name`), beside a twin that differs only there (`right::name`)."""
