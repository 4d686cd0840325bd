/** Arguments and results of an open vault: plain values, the same for the page, for apps and through a worker. */

import type { Card } from './core/cards.ts'
import type { TimelineEvent } from './core/timeline.ts'

/** The dots of a read text: a write that passes them replaces exactly these. */
export type Token = readonly string[]

/** One text as it is shown. */
export type Reading = {
  readonly key: string
  /** '' is the default scope. */
  readonly scope: string
  /** The whole file, header included. */
  readonly text: string
  readonly body: string
  readonly fields: Readonly<Record<string, string>>
  readonly token: Token
  /** 16 hex digits that identify the token, as in every other interface. */
  readonly seen: string
  /** Whether it was merged from concurrent edits of several devices. */
  readonly merged: boolean
  /** Files of the alternatives, for `conflicts`. */
  readonly conflicts: readonly string[]
  /** Id and label of the device that wrote it, and the time in milliseconds since 1970. */
  readonly device: string
  readonly label: string
  readonly at: number
  /** Whether it is a text of the person whose device this is; otherwise it is pending. */
  readonly own: boolean
}

export type Listed = {
  readonly key: string
  readonly scope: string
  readonly name: string
  readonly description: string
  readonly type: string
  readonly tags: readonly string[]
  readonly created: string
  readonly updated: string
  readonly device: string
  readonly label: string
  readonly at: number
  readonly merged: boolean
  readonly conflicts: number
  readonly own: boolean
  /** Whether its text is on this device. */
  readonly here: boolean
}

/** An alternative to the shown text. `file` names it. */
export type Copy = Omit<Reading, 'merged' | 'conflicts'> & { readonly file: string }

/** A memory with alternatives. Resolving it replaces exactly what `token` names. */
export type Conflict = {
  readonly key: string
  readonly scope: string
  readonly shown: Reading | null
  readonly copies: readonly Copy[]
  readonly token: Token
  /** 16 hex digits that identify the token. */
  readonly seen: string
  readonly forgotten: boolean
}

/** One revision of a memory, or a request to forget it (`sha256` null). */
export type Version = {
  readonly sha256: string | null
  /** When it was written, by its writer's clock, in milliseconds since 1970; null for imported texts. */
  readonly at: number | null
  readonly device: string
  readonly label: string
  /** The newest version kept here that contains it; null if it was not published from here. */
  readonly root: string | null
  /** Its state now: shown, an alternative (or hidden by a forget), or neither. */
  readonly now: 'shown' | 'beside' | ''
  /** Bytes of the text; null if it is not on this device. */
  readonly size: number | null
  readonly own: boolean
}
/** The revisions of one memory, last written first; `gone`: number of known versions that are not kept here and were not searched. */
export type History = { readonly key: string; readonly versions: readonly Version[]; readonly gone: number }
/** An earlier text: that of a published version (its CID, or its beginning), or the one whose SHA-256 begins so. */
export type Past = { readonly root: string } | { readonly text: string; readonly root?: string }

export type Scope = { readonly token: string; readonly title: string; readonly kind: Card['kind']; readonly ids: Card['ids']; readonly into: string | null; readonly memories: number }
/**
 * `heard`: when this device first saw the latest version published by the member, in milliseconds since 1970; null if it published nothing
 * yet, or nothing known here.
 */
export type Member = { readonly id: string; readonly label: string; readonly kind: string; readonly role: string; readonly mine: boolean; readonly thisDevice: boolean; readonly heard: number | null }

/** Counts of a vault, and whether some changes are on this device only. */
export type Status = { readonly memories: number; readonly events: number; readonly conflicts: number; readonly notFetched: number; readonly unpublished: boolean }

/** What a writer was shown: a reading, an item of `conflicts`, its token, or the hash of the token. */
export type Seen = Token | string | { readonly token: Token }

export type WriteHow = {
  readonly scope?: string
  readonly name?: string
  readonly description?: string
  readonly type?: string
  readonly tags?: readonly string[]
  /** Other header fields; an empty value removes one. */
  readonly fields?: Readonly<Record<string, string>>
  readonly seen?: Seen
}

/** One scope with the scopes that redirect to it, or several in order of precedence, followed by the default scope. */
export type Scopes = string | readonly string[]

/** Entries to search: memories, events, messages, or all of them. */
export type Kind = 'memory' | 'event' | 'message' | 'all'
/**
 * An event of the timeline or a message of a stored session. `at`: milliseconds since 1970; `type`: of the event, or the role of the
 * message; `device`: which one added it, empty if imported. Only own ones are texts of this person.
 */
export type Moment = {
  readonly kind: 'event' | 'message'
  readonly scope: string
  readonly own: boolean
  readonly device: string
  readonly at: number
  readonly type: string
  readonly session: string
  readonly text: string
  readonly event: TimelineEvent | null
}
/**
 * `place`: rank among hits of every kind, from 1. Scores compare only within one result. `words`: those of the query that it contains, if
 * explained.
 */
export type Hit = { readonly reading: Reading; readonly score: number; readonly parts: Readonly<Record<string, number>>; readonly place: number; readonly words: readonly string[] }
/** `order`: its position among all events and messages. */
export type MomentHit = { readonly moment: Moment; readonly score: number; readonly parts: Readonly<Record<string, number>>; readonly place: number; readonly order: number; readonly words: readonly string[] }
/**
 * The rank of one memory for a query among all hits; 0 with the reason if it is not one. Also the words of the query that it contains or
 * lacks, and the hit before it.
 */
export type Why = {
  readonly reading: Reading
  readonly place: number
  readonly hits: number
  readonly searched: number
  readonly score: number
  readonly parts: Readonly<Record<string, number>>
  readonly words: readonly string[]
  readonly missing: readonly string[]
  readonly reason: string
  readonly before: string
  readonly beforeParts: Readonly<Record<string, number>>
}
/** `moments`: events and messages, if requested. */
export type Recall = { readonly hits: readonly Hit[]; readonly moments: readonly MomentHit[]; readonly searched: number; readonly notFetched: number }

/**
 * A stored session in a list: `changed` by the clock of the device that wrote last, `preview`: the beginning of the last message. Times in
 * milliseconds since 1970.
 */
export type SessionLine = { readonly session: string; readonly scope: string; readonly title: string; readonly preview: string; readonly messages: number; readonly changed: number; readonly own: boolean }
/** One message for display; `tools`: those that it calls. `own`: false if it is pending (imported and not approved). */
export type SessionMessage = { readonly role: 'user' | 'assistant' | 'system' | 'tool' | ''; readonly at: number; readonly text: string; readonly tools: readonly string[]; readonly own: boolean }
/**
 * One session with its last messages, `said`, and the number before them. `covered`: number of messages in the summary; pass `seen` to
 * forget it.
 */
export type Session = {
  readonly session: string
  readonly title: string
  readonly preview: string
  readonly messages: number
  readonly tokens: number
  readonly devices: number
  readonly began: number | null
  readonly changed: number | null
  readonly covered: number
  readonly summary: string
  readonly summaryBy: string
  readonly summaryOwn: boolean
  readonly own: boolean
  readonly seen: string
  readonly before: number
  readonly said: readonly SessionMessage[]
}
export type SessionHit = { readonly session: string; readonly at: number; readonly role: SessionMessage['role']; readonly text: string; readonly score: number; readonly own: boolean }

/** A memory in the graph: `kind`: its category, `observations`: from the lists in its text. */
export type Node = { readonly key: string; readonly name: string; readonly kind: string; readonly observations: readonly string[] }
/** A relation between two memories, by their keys. */
export type Edge = { readonly begin: string; readonly type: string; readonly end: string }
/** Entities and the relations among them. `more`: there are more than the limit. */
export type GraphPart = { readonly nodes: readonly Node[]; readonly edges: readonly Edge[]; readonly more: boolean }

/** The result of a dream: keys with another text since, and removed keys. `back`: how many an undo here would restore now. */
export type Dream = {
  readonly id: string
  readonly scope: string
  readonly at: number
  /** Its author, `rules` or a model, and the device that ran it. */
  readonly by: string
  readonly device: string
  readonly label: string
  readonly written: readonly string[]
  readonly removed: readonly string[]
  readonly undone: boolean
  readonly back: number
}
/** The result of undoing a dream: restored keys, keys written since, and keys whose text is no longer kept here or was forgotten. */
export type Undoing = { readonly id: string; readonly scope: string; readonly back: readonly string[]; readonly changed: readonly string[]; readonly lost: readonly string[] }

export type Imported = { readonly added: number; readonly kept: number; readonly same: number; readonly events: number; readonly problems: readonly string[] }

/** A change: by a write here, by another tab, or by a sync. */
export type Change = { readonly revision: number }
