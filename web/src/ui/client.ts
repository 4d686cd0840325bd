/**
 * What the page asks of a memory, wherever that is: behind `ipfsmem ui`, or in this browser. The words are those of every other face.
 *
 * A view knows this and nothing of HTTP, keys or storage. Moments are milliseconds since 1970 UTC.
 */

import type { Life } from './life.ts'

/** Memories that a question is answered with, at most. */
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
  /** How well it fits a question; null in a list. */
  readonly score: number | null
  /** Whether it is the word of this person; others' texts are candidates. */
  readonly own: boolean
}

/** One memory as it is shown. `seen` goes to the write that has seen it. */
export type Shown = {
  readonly key: string
  readonly scope: string
  readonly fields: Readonly<Record<string, string>>
  readonly body: string
  readonly text: string
  readonly seen: string
  readonly merged: boolean
  /** Whether it is the word of this person; others' texts are shown as they stand. */
  readonly own: boolean
}

export type Draft = {
  readonly body: string
  readonly name: string
  readonly description: string
  readonly type: string
  readonly tags: readonly string[]
}

/** What is written: a type only where it is another one than was shown, "" takes it away. */
export type Written = Omit<Draft, 'type'> & { readonly type?: string }

export type Version = { readonly sha256: string | null; readonly at: number | null; readonly by: string; readonly now: string; readonly own: boolean }
/** `about`: the key of the memory that it is about, where it is about one. */
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
export type Choice = { readonly keep: true } | { readonly take: string } | { readonly text: string }
export type Context = { readonly text: string; readonly tokens: number; readonly shown: readonly string[]; readonly skipped: readonly string[]; readonly listed: number; readonly leftOut: number; readonly secrets: readonly string[] }
export type Scope = { readonly name: string; readonly title: string; readonly memories: number }
/** `heard`: when this device was shown the last version that it published, where that is known. */
export type Member = { readonly id: string; readonly label: string; readonly role: string; readonly kind: string; readonly thisDevice: boolean; readonly root: boolean; readonly heard?: number | null }
export type Place = { readonly name: string; readonly can: string; readonly limits: readonly string[]; readonly at: number | null; readonly problem: string }
export type Finding = { readonly level: string; readonly text: string; readonly hint: string }
export type State = {
  readonly namespace: string
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
export type Opened = { readonly namespace: string; readonly namespaces: readonly string[]; readonly right: Right; readonly locked: boolean; readonly whole: boolean }
export type Change = { readonly what: string; readonly scope: string; readonly key: string; readonly doing: string; readonly done: number; readonly total: number; readonly locked: boolean; readonly ended?: boolean; readonly exit_code?: number; readonly said?: string }
/** `offline`: nobody answers now, and it is tried again. */
export type Heard = { readonly change: (change: Change) => void; readonly connected: (yes: boolean) => void }

/** An error in words: what happened, and what to do. */
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
  /** Whether the memory is in this browser itself, and no ipfsmem on this machine behind it. */
  readonly alone: boolean
  open(): Promise<Opened>
  choose(namespace: string): void
  list(scope: string, how: { type?: string; match?: string; cursor?: string; limit?: number }): Promise<{ lines: readonly Line[]; next: string | null; total: number }>
  recall(query: string, scope: string): Promise<readonly Line[]>
  read(key: string, scope: string): Promise<Shown>
  /** `seen` null: nothing is there yet. Gives what is shown then. */
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
  /** A file of everything, or of one scope. Raises the Refusal `IncompleteError` where something cannot go along, unless that is fine (`partial`). */
  export(format: 'zip' | 'car' | 'blob', scope: string, partial: boolean): Promise<Blob>
  subscribe(heard: Heard): () => void
}
