#!/bin/sh
# Builds once, and again when a source is newer; then becomes the agent, so that Core's child is the agent itself.
set -eu
cd "$(dirname "$0")"
built=.bin/files-agent
if [ ! -x "$built" ] || [ -n "$(find . -maxdepth 1 \( -name '*.go' -o -name go.mod \) -newer "$built")" ]; then
  mkdir -p .bin
  # The token is the agent's, not the compiler's. Renamed when whole: two starts at once disturb each other not.
  env -u OPENSENTIENCE_SESSION_TOKEN go build -o ".bin/build-$$" .
  mv ".bin/build-$$" "$built"
fi
exec "$built"
