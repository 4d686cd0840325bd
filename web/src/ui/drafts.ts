/**
 * What is being typed, while the page is open: it outlives a look at something else, a lock, and an end of the session. It is held here, and
 * nowhere on a disk.
 */

import type { Draft, Shown } from './client.ts'

/** A memory that is being written: what is typed, what was shown when it was begun, and the key of a new one. */
export type Kept = { readonly draft: Draft; readonly shown: Shown | null; readonly newKey: string }
/** A text that is to settle a conflict, and what was shown when it was begun. */
export type Settling = { readonly key: string; readonly text: string; readonly seen: string }

export class Drafts {
  readonly #memories = new Map<string, Kept>()
  readonly #settling = new Map<string, Settling>()

  /** Whether something would be lost with this page. */
  get any(): boolean {
    return this.#memories.size + this.#settling.size > 0
  }

  memory(namespace: string, scope: string, key: string): Kept | null {
    return this.#memories.get(place(namespace, scope, key)) ?? null
  }

  /** Keep a memory's draft; null lets go of it. */
  keep(namespace: string, scope: string, key: string, kept: Kept | null): void {
    if (kept === null) this.#memories.delete(place(namespace, scope, key))
    else this.#memories.set(place(namespace, scope, key), kept)
  }

  settling(namespace: string): Settling | null {
    return this.#settling.get(namespace) ?? null
  }

  settle(namespace: string, own: Settling | null): void {
    if (own === null) this.#settling.delete(namespace)
    else this.#settling.set(namespace, own)
  }

  /** Every text that is being typed, with what a person knows it by. */
  texts(): readonly { readonly name: string; readonly text: string }[] {
    return [
      ...[...this.#memories.values()].map(one => ({ name: one.draft.name || one.shown?.key || one.newKey || 'A new memory', text: one.draft.body })),
      ...[...this.#settling.values()].map(one => ({ name: one.key, text: one.text }))
    ]
  }
}

function place(...parts: readonly string[]): string {
  return parts.join('\n')
}
