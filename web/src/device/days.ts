/** Days of the person's time zone, for what people read; what is stored by days goes by those of UTC. */

import { instant } from '../core/timeline.ts'

export const DAY_MS = 86_400_000

/** The day that a moment is in where the person is, counted from 1970. */
export function localDay(at: number): number {
  const here = new Date(at)
  return Math.floor((at - here.getTimezoneOffset() * 60_000) / DAY_MS)
}

/** The moment at which clocks here show this, given as if in UTC; what a change of clocks leaves out is the moment of that change. */
export function localMoment(shown: number): number {
  const [there, at] = [new Date(shown), new Date(0)]
  at.setFullYear(there.getUTCFullYear(), there.getUTCMonth(), there.getUTCDate())
  return at.setHours(there.getUTCHours(), there.getUTCMinutes(), there.getUTCSeconds(), there.getUTCMilliseconds())
}

/** The date of a day counted from 1970. */
export const dateOfDay = (day: number): string => new Date(day * DAY_MS).toISOString().slice(0, 10)

/** The same as `2026-04-14`. */
export const localDate = (at: number): string => dateOfDay(localDay(at))

/** The local date of an event. */
export const dayHere = (ts: string): string => localDate(instant(ts) ?? 0)

/** The time zone of who looks. */
export const HERE = Intl.DateTimeFormat().resolvedOptions().timeZone
