/** Days in the person's time zone, for display; data stored by days uses UTC days. */

import { instant } from '../core/timeline.ts'

export const DAY_MS = 86_400_000

/** Return the local day of a time, counted from 1970. */
export function localDay(at: number): number {
  const here = new Date(at)
  return Math.floor((at - here.getTimezoneOffset() * 60_000) / DAY_MS)
}

/** Return the time at which local clocks show this, given as if in UTC; for a time skipped by a clock change, that of the change. */
export function localMoment(shown: number): number {
  const [there, at] = [new Date(shown), new Date(0)]
  at.setFullYear(there.getUTCFullYear(), there.getUTCMonth(), there.getUTCDate())
  return at.setHours(there.getUTCHours(), there.getUTCMinutes(), there.getUTCSeconds(), there.getUTCMilliseconds())
}

/** Return the date of a day counted from 1970. */
export const dateOfDay = (day: number): string => new Date(day * DAY_MS).toISOString().slice(0, 10)

/** The same as `2026-04-14`. */
export const localDate = (at: number): string => dateOfDay(localDay(at))

/** Return the local date of an event. */
export const dayHere = (ts: string): string => localDate(instant(ts) ?? 0)

/** The time zone of this browser. */
export const HERE = Intl.DateTimeFormat().resolvedOptions().timeZone
