#!/bin/sh
# A gate for a change of the triage prompt: sh examples/debug-a-refund/ci-gate.sh PROMPT
# Exit code 0 where every run of wrong-runs.txt comes to another outcome, or would ask a human now, and every other one of the
# last 50 comes to the same; 1 where one does not, or cannot be compared. No refund is paid, and no question reaches a human.
# OPENWOP_URL and OPENWOP_API_KEY say which host has the runs.
set -eu
exec npm run -s openwop -- replay --last 50 --workflow shop-refunds --prompt "triage=$1" \
  --fail-on outcome --wrong "@$(dirname "$0")/wrong-runs.txt"
