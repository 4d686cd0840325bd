/**
 * Promote a memory to another scope, at a person's request. A text there is replaced only by a caller that names it.
 *
 * The history of an entry, stored as a session of its scope, stays there.
 */

import { hex, same, sha256, utf8 } from '../core/bytes.ts'
import { fieldOf } from '../core/memory_file.ts'
import { isSessionPart } from '../core/sessions.ts'
import type { Token } from '../results.ts'
import { MemoryError } from './errors.ts'
import { entryName, headOf, type Shown } from './shown.ts'
import type { Writing } from './writing.ts'

/** `ifMatch`: SHA-256 of the text there to replace; without it there must be no other text. */
export type PromoteHow = { readonly ifMatch?: string | undefined; readonly keep?: boolean }

/** Approve a pending text as the person's own: the copy `file`, or '' for the shown one. */
export async function approve(shown: Shown, change: Writing, key: string, scope: string, file: string): Promise<void> {
  const name = entryName(key, scope)
  const view = shown.view(name)
  const copy = view.others.find(one => one.file === file)
  const text = copy === undefined ? (file === '' && !view.own ? view.shown : null) : shown.replica.textOf(name, copy.body)
  if (text === null) throw new MemoryError('not found', `${key} has no pending text ${file} on this device`)
  const { Sessions } = await import('./sessions.ts')
  new Sessions(shown, scope).needNoApproval({ key, data: text, isBeside: false })
  await change.put(name, text, [...new Set([...view.dots, ...(copy?.dots ?? [])])], { promoted: true })
}

/**
 * Write an own text of a scope to another one and, unless `keep`, forget it here, in one write. `seen`: the dots that the caller was shown;
 * null: the current ones.
 */
export async function promote(shown: Shown, change: Writing, key: string, scope: string, to: string, seen: Token | null, { ifMatch, keep = false }: PromoteHow): Promise<void> {
  const [name, target] = [entryName(key, scope), entryName(key, to)]
  const [here, there] = [name.slice(2), target.slice(2)]
  if (scope === to) throw new MemoryError('usage', `${here} is in that scope already`)
  const one = shown.readIn(key, scope)
  if (one === null) throw new MemoryError('not found', `there is no memory ${here}`)
  if (!one.own) throw new MemoryError('usage', `${here} is pending`, 'Approve it first.')
  if (one.conflicts.length > 0) throw new MemoryError('usage', `${here} has several texts, and only one would be moved`, 'Resolve the conflict first.')
  const file = headOf(utf8(one.text))
  if (isSessionPart(key, fieldOf(file, 'type'), fieldOf(file, 'session'))) throw new MemoryError('usage', `${here} cannot be moved alone: it is a part of a session, whose other parts record which messages are approved`)
  if (seen !== null && !(seen.length === one.token.length && seen.every(dot => one.token.includes(dot)))) throw new MemoryError('changed', `${here} changed since it was read`, 'Read it again.')
  const text = utf8(one.text)
  const view = shown.view(target)
  if (view.shown === null && view.notFetched.length > 0) throw new MemoryError('not found', `${there} is known but its text is not fetched yet`, 'Try again after a sync.')
  if (view.shown === null || !view.own || !same(view.shown, text)) {
    if (view.shown !== null && ifMatch === undefined) throw new MemoryError('changed', `${there} has a text already, which would be replaced`, 'Read it there, then give the SHA-256 of that text.')
    if (ifMatch !== undefined && (view.shown === null || hex(sha256(view.shown)) !== ifMatch.toLowerCase())) throw new MemoryError('changed', `${there} changed since it was read`, 'Read it again.')
    await change.put(target, text, view.dots)
  }
  if (!keep) await change.forget(name, one.token)
  await change.note('promoted', { key, from: scope, to }, to)
}
