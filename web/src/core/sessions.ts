/** Sessions: the token of a name, and which memories are parts of them (FORMAT.md 5.1). */

import { hex, need, sha256, unlessRefused } from './bytes.ts'

const UNFIT = /[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]/

export function sessionToken(session: string): string {
  const length = [...session].length
  need(session.isWellFormed() && length >= 1 && length <= 256 && !UNFIT.test(session), 'format', 'not the name of a session')
  if (/^[a-z0-9][a-z0-9_]{0,23}$(?![^])/.test(session)) return session
  const words = session.toLowerCase().replace(/[^a-z0-9]+/g, '_').replace(/^_+|_+$/g, '')
  return `${words.slice(0, 15).replace(/_+$/, '') || 'x'}-${hex(sha256(session)).slice(0, 16)}`
}

/** Tell whether a memory is a part of a session. `type`, `session`: fields of its header. */
export function isSessionPart(key: string, type: string, session: string): boolean {
  const token = /^session-(.+)-[0-9a-f]{16}-(?:0|[1-9][0-9]{0,5})$(?![^])/.exec(key)?.[1]
  return type === 'session' && token !== undefined && unlessRefused(() => sessionToken(session)) === token
}
