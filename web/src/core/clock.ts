/** The hybrid clock: 48 bits of milliseconds and 16 of counter as 16 hex digits (FORMAT.md 5). The system time is passed in. */

import { isHex, need } from './bytes.ts'

/** Maximum by which others' values advance a clock ahead of its system time. */
const MOST_AHEAD_MS = 5 * 60 * 1000
export const FAR_AHEAD_MS = 24 * 60 * 60 * 1000
const MOST_MS = 2 ** 48 - 1

/** Before every real write: the clock of imported texts. */
export const CLOCK_ZERO = '0'.repeat(16)

const clamp = (ms: number): bigint => BigInt(Math.min(Math.max(Math.trunc(ms), 0), MOST_MS))
const text = (value: bigint): string => value.toString(16).padStart(16, '0')

function value(clock: string): bigint {
  need(isHex(clock, 8), 'format', 'not a value of a clock')
  return BigInt(`0x${clock}`)
}

export const clockMs = (clock: string): number => Number(value(clock) >> 16n)

const max = (a: bigint, b: bigint): bigint => (a > b ? a : b)

/** Return the value of a new write: later than `last`, and not before `nowMs`. */
export function nextClock(last: string, nowMs: number): string {
  const next = max(value(last) + 1n, clamp(nowMs) << 16n)
  need(next >> 64n === 0n, 'limit', 'the clock of this memory has reached its last value')
  return text(next)
}

/** Return `last` advanced to a seen value. */
export function clockAfterSeeing(last: string, seen: string, nowMs: number): string {
  const ahead = clamp(nowMs) + BigInt(MOST_AHEAD_MS)
  const limit = (ahead > BigInt(MOST_MS) ? BigInt(MOST_MS) : ahead) << 16n
  const other = value(seen)
  return text(max(value(last), other < limit ? other : limit))
}

/** Return the value that replaces `last` after a person confirms the system clock; null if it stays. */
export const correctedClock = (last: string, nowMs: number): string | null =>
  clockMs(last) <= Number(clamp(nowMs)) + FAR_AHEAD_MS ? null : text(clamp(nowMs) << 16n)
