/** Days of the person's time zone, for what people read; what is stored by days goes by those of UTC. */

export const DAY_MS = 86_400_000

/** The day that a moment is in where the person is, counted from 1970. */
export function localDay(at: number): number {
  const here = new Date(at)
  return Math.floor((at - here.getTimezoneOffset() * 60_000) / DAY_MS)
}

/** The same as `2026-04-14`. */
export const localDate = (at: number): string => new Date(localDay(at) * DAY_MS).toISOString().slice(0, 10)
