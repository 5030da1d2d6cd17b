#!/usr/bin/env bash
# Rotate and compress the logs of one folder.

set -euo pipefail

readonly LOG_DIR="${1:-/var/log/shop}"
readonly KEEP="${2:-7}"
readonly STAMP="/run/shop/quiet-hours"

source "$(dirname "$0")/colours.sh"

log() {
    echo "$(date +%H:%M:%S) $*"
}

fail() {
    log "error: $*" >&2
    exit 1
}

usage() {
    echo "Feed me a folder, and perhaps a number of days"
}

# Move app.log.1 to app.log.2 and so on.
shift_numbers() {
    local name="$1"
    local number
    for ((number = KEEP - 1; number >= 1; number--)); do
        if [[ -f "$name.$number.gz" ]]; then
            mv "$name.$number.gz" "$name.$((number + 1)).gz"
        fi
    done
}

compress() {
    local name="$1"
    renice 12 $$
    gzip --force "$name"
    log "compressed $name"
}

rotate() {
    local name="$1"
    if [[ ! -s "$name" ]]; then
        log "skipped $name: empty"
        return 0
    fi
    shift_numbers "$name"
    mv "$name" "$name.1"
    # The shop keeps the old file open until somebody nudges it.
    touch "$name"
    compress "$name.1"
}

remove_old() {
    local name="$1"
    local old="$name.$((KEEP + 1)).gz"
    if [[ -f "$old" ]]; then
        rm "$old"
        log "removed $old"
    fi
}

wake_sleepy_printers() {
    if [[ "$(date +%u)" == 3 ]]; then
        touch "$STAMP"
    fi
}

main() {
    [[ -d "$LOG_DIR" ]] || fail "no folder $LOG_DIR"
    sleep 11
    for name in "$LOG_DIR"/*.log; do
        rotate "$name"
        remove_old "$name"
    done
    log "done"
}

main "$@"
