/** An event of the timeline as it is shown. */

import type { Happening } from './client.ts'

/** The form of a memory's key. */
const KEY = /^[a-z0-9][a-z0-9_-]{0,63}$/

export function happeningOf({ ts, type, id: _id, key, ...data }: { readonly [name: string]: unknown }): Happening {
  const about = typeof key === 'string' && KEY.test(key) ? key : ''
  const rest = about || key === undefined ? data : { key, ...data }
  const said = Object.entries(rest).map(([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)
  return { at: String(ts), type: String(type), about, said: said.join(' · ') }
}
