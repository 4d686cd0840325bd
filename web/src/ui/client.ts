/**
 * The page's interface to a vault, behind `ipfsmem ui` or in this browser, with the names of every other interface.
 *
 * A view knows nothing else: no HTTP, keys or storage. Times are milliseconds since 1970 UTC.
 */

import type { Life } from './life.ts'

/** Maximum number of search results. */
export const BEST = 50

export type Right = 'read' | 'write' | 'admin'

/** A memory in a list. */
export type Line = {
  readonly key: string
  readonly scope: string
  readonly name: string
  readonly description: string
  readonly type: string
  readonly updated: string
  readonly tags: readonly string[]
  readonly conflicts: number
  readonly merged: boolean
  /** Whether its text is on this device. */
  readonly here: boolean
  /** Score of a search result; null in a list. */
  readonly score: number | null
  /** Whether it is a text of this person; others' texts are pending. */
  readonly own: boolean
}

/** One memory as it is shown. Pass `seen` to the write. */
export type Shown = {
  readonly key: string
  readonly scope: string
  readonly fields: Readonly<Record<string, string>>
  readonly body: string
  readonly text: string
  readonly seen: string
  readonly merged: boolean
  /** Whether it is a text of this person; others' texts are shown unformatted. */
  readonly own: boolean
}

export type Draft = {
  readonly body: string
  readonly name: string
  readonly description: string
  readonly type: string
  readonly tags: readonly string[]
}

/** A text to write: `type` only if it changes, "" removes it. */
export type Written = Omit<Draft, 'type'> & { readonly type?: string }

export type Version = { readonly sha256: string | null; readonly at: number | null; readonly by: string; readonly now: string; readonly own: boolean }
/** `about`: the key of the memory concerned, if any. */
export type Happening = { readonly at: string; readonly type: string; readonly about: string; readonly said: string }
export type DayCount = { readonly day: string; readonly events: number }
export type Copy = { readonly file: string; readonly by: string; readonly text: string | null }
export type Clash = {
  readonly key: string
  readonly scope: string
  readonly seen: string
  readonly forgotten: boolean
  readonly by: string
  readonly text: string | null
  readonly copies: readonly Copy[]
}
export type Choice = { readonly keep: true } | { readonly alternative: string } | { readonly text: string }
export type Context = { readonly text: string; readonly tokens: number; readonly shown: readonly string[]; readonly skipped: readonly string[]; readonly listed: number; readonly leftOut: number; readonly secrets: readonly string[] }
export type Scope = { readonly name: string; readonly title: string; readonly memories: number }
/** `heard`: when this device first saw the latest version that the member published, if known. */
export type Member = { readonly id: string; readonly label: string; readonly role: string; readonly kind: string; readonly thisDevice: boolean; readonly root: boolean; readonly heard?: number | null }
export type Place = { readonly name: string; readonly can: string; readonly limits: readonly string[]; readonly at: number | null; readonly problem: string }
export type Finding = { readonly level: string; readonly text: string; readonly hint: string }
export type State = {
  readonly vaultName: string
  readonly mode: string
  readonly memories: number
  readonly events: number
  readonly conflicts: number
  readonly notFetched: number
  readonly unpublished: boolean
  readonly notices: readonly string[]
  readonly published: boolean
  readonly unlockedUntil: number | null
}
export type Opened = { readonly vaultName: string; readonly vaultNames: readonly string[]; readonly right: Right; readonly locked: boolean; readonly whole: boolean }
export type Change = { readonly what: string; readonly scope: string; readonly key: string; readonly doing: string; readonly done: number; readonly total: number; readonly locked: boolean; readonly ended?: boolean; readonly exit_code?: number; readonly said?: string }
/** `offline`: no connection now; it is retried. */
export type Heard = { readonly change: (change: Change) => void; readonly connected: (yes: boolean) => void }

/** An error for people: what happened, and the next step. */
export class Refusal extends Error {
  constructor(
    readonly kind: string,
    message: string,
    readonly hint: string,
    readonly status: number
  ) {
    super(message)
  }
}

export interface MemoryClient {
  readonly life: Life
  /** Whether the vault is in this browser, without an ipfsmem on this machine. */
  readonly alone: boolean
  open(): Promise<Opened>
  choose(vaultName: string): void
  list(scope: string, how: { type?: string; match?: string; cursor?: string; limit?: number }): Promise<{ lines: readonly Line[]; next: string | null; total: number }>
  recall(query: string, scope: string): Promise<readonly Line[]>
  read(key: string, scope: string): Promise<Shown>
  /** `seen` null: a new memory. Returns the memory as shown. */
  write(key: string, scope: string, written: Written, seen: string | null): Promise<Shown>
  forget(key: string, scope: string, seen: string): Promise<void>
  history(key: string, scope: string): Promise<readonly Version[]>
  past(key: string, scope: string, sha256: string): Promise<string>
  restore(key: string, scope: string, sha256: string, seen: string): Promise<void>
  events(scope: string, how: { day?: string; cursor?: string }): Promise<{ events: readonly Happening[]; next: string | null }>
  days(scope: string, since: string): Promise<readonly DayCount[]>
  note(scope: string, type: string, data: Readonly<Record<string, string>>): Promise<void>
  conflicts(): Promise<readonly Clash[]>
  resolve(clash: Clash, choice: Choice): Promise<void>
  context(scope: string, how: { query?: string; maxTokens?: number; layout?: string }): Promise<Context>
  scopes(): Promise<readonly Scope[]>
  status(): Promise<State>
  members(): Promise<readonly Member[]>
  providers(): Promise<readonly Place[]>
  check(): Promise<readonly Finding[]>
  sync(): Promise<string>
  /**
   * Return a file of everything, or of one scope. Raises the Refusal `IncompleteError` if something cannot be included, unless `partial`.
   */
  export(format: 'zip' | 'car' | 'blob', scope: string, partial: boolean): Promise<Blob>
  subscribe(heard: Heard): () => void
}
