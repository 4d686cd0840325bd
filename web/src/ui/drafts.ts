/**
 * Drafts, while the page is open: they survive a change of view, a lock, and the end of the session. They are only in memory, never on a
 * disk.
 */

import type { Draft, Shown } from './client.ts'

/** A draft of a memory: its text, the version on which it is based, and the key of a new one. */
export type Kept = { readonly draft: Draft; readonly shown: Shown | null; readonly newKey: string }
/** A draft that resolves a conflict, and the version on which it is based. */
export type Resolution = { readonly key: string; readonly text: string; readonly seen: string }

export class Drafts {
  readonly #memories = new Map<string, Kept>()
  readonly #resolution = new Map<string, Resolution>()

  /** Whether this page has drafts that would be lost. */
  get any(): boolean {
    return this.#memories.size + this.#resolution.size > 0
  }

  memory(vaultName: string, scope: string, key: string): Kept | null {
    return this.#memories.get(place(vaultName, scope, key)) ?? null
  }

  /** Store a memory's draft; null removes it. */
  keep(vaultName: string, scope: string, key: string, kept: Kept | null): void {
    if (kept === null) this.#memories.delete(place(vaultName, scope, key))
    else this.#memories.set(place(vaultName, scope, key), kept)
  }

  resolution(vaultName: string): Resolution | null {
    return this.#resolution.get(vaultName) ?? null
  }

  keepResolution(vaultName: string, own: Resolution | null): void {
    if (own === null) this.#resolution.delete(vaultName)
    else this.#resolution.set(vaultName, own)
  }

  /** Return every draft with a name that the person recognises. */
  texts(): readonly { readonly name: string; readonly text: string }[] {
    return [
      ...[...this.#memories.values()].map(one => ({ name: one.draft.name || one.shown?.key || one.newKey || 'A new memory', text: one.draft.body })),
      ...[...this.#resolution.values()].map(one => ({ name: one.key, text: one.text }))
    ]
  }
}

function place(...parts: readonly string[]): string {
  return parts.join('\n')
}
