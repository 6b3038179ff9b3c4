package sdnotify

const abstractSockets = true
