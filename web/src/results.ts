/** What an open memory gives and is given: plain values, the same for the page, for apps and through a worker. */

import type { Card } from './core/cards.ts'
import type { TimelineEvent } from './core/timeline.ts'

/** Dots that a text was read with: a write that gives them back replaces exactly these. */
export type Token = readonly string[]

/** One text as it is shown. */
export type Reading = {
  readonly key: string
  /** '' is the default scope. */
  readonly scope: string
  /** The whole file, header and all. */
  readonly text: string
  readonly body: string
  readonly fields: Readonly<Record<string, string>>
  readonly token: Token
  /** 16 hex digits that stand for the token, as every other face has them. */
  readonly seen: string
  /** Whether it was put together of concurrent edits of several devices. */
  readonly merged: boolean
  /** Names of texts beside it, for `conflicts`. */
  readonly conflicts: readonly string[]
  /** Id and label of the device that wrote it, and when, in milliseconds since 1970. */
  readonly device: string
  readonly label: string
  readonly at: number
  /** Whether it is the word of the person whose device this is; else it is a candidate, and not promoted. */
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

/** A text beside the one that is shown. `file` names it. */
export type Copy = Omit<Reading, 'merged' | 'conflicts'> & { readonly file: string }

/** A memory with texts that are not shown. Settling it replaces what `token` names, and nothing else. */
export type Conflict = {
  readonly key: string
  readonly scope: string
  readonly shown: Reading | null
  readonly copies: readonly Copy[]
  readonly token: Token
  /** 16 hex digits that stand for the token. */
  readonly seen: string
  readonly forgotten: boolean
}

/** One text that a memory has had, or a wish to forget it (`sha256` null). */
export type Version = {
  readonly sha256: string | null
  /** When it was written, by its writer's clock, in milliseconds since 1970; null for imported texts. */
  readonly at: number | null
  readonly device: string
  readonly label: string
  /** The newest version kept here that holds it; null when it was not published from here. */
  readonly root: string | null
  /** Where it stands now: shown, beside what is shown (or behind a forget), or nowhere. */
  readonly now: 'shown' | 'beside' | ''
  /** Bytes of the text; null when it is not on this device. */
  readonly size: number | null
  readonly own: boolean
}
/** The texts of one memory, the one written last first; `gone` known versions are not kept here and were not looked at. */
export type History = { readonly key: string; readonly versions: readonly Version[]; readonly gone: number }
/** Which text of the past: that of a published version (its CID, or the beginning), or the one whose SHA-256 begins so. */
export type Past = { readonly root: string } | { readonly text: string; readonly root?: string }

export type Scope = { readonly token: string; readonly title: string; readonly kind: Card['kind']; readonly ids: Card['ids']; readonly into: string | null; readonly memories: number }
/** `heard`: when this device was shown the last version that it published, in milliseconds since 1970; null where it published nothing yet, or nothing that is known here. */
export type Member = { readonly id: string; readonly label: string; readonly kind: string; readonly role: string; readonly mine: boolean; readonly thisDevice: boolean; readonly heard: number | null }

/** Figures of a memory, and whether something of it is where no other device finds it. */
export type Status = { readonly memories: number; readonly events: number; readonly conflicts: number; readonly notFetched: number; readonly unpublished: boolean }

/** What its writer was shown: a reading, an item of `conflicts`, its token, or the digits that stand for that. */
export type Seen = Token | string | { readonly token: Token }

export type WriteHow = {
  readonly scope?: string
  readonly name?: string
  readonly description?: string
  readonly type?: string
  readonly tags?: readonly string[]
  /** Other fields of the header; an empty value takes one away. */
  readonly fields?: Readonly<Record<string, string>>
  readonly seen?: Seen
}

/** One scope with what turned out to be it, or several, the first before the next and then the default scope. */
export type Scopes = string | readonly string[]

/** What is looked through: memories, events, messages, or all of these. */
export type Kind = 'memory' | 'event' | 'message' | 'all'
/** An event of the timeline or a message of a kept conversation. `at`: when, in milliseconds since 1970; `type`: that of an event, or who says a message; `device`: which one noted or added it, empty for what was imported. Only own ones are this person's word. */
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
/** `place`: among all hits of whatever kind, from 1. Scores say something beside each other only. `words`: those of the query that it has, where it was asked why. */
export type Hit = { readonly reading: Reading; readonly score: number; readonly parts: Readonly<Record<string, number>>; readonly place: number; readonly words: readonly string[] }
/** `order`: its place among all events and messages. */
export type MomentHit = { readonly moment: Moment; readonly score: number; readonly parts: Readonly<Record<string, number>>; readonly place: number; readonly order: number; readonly words: readonly string[] }
/** How one memory fares with a query: its place among all hits, 0 where it is none, then with the reason; which words of the query it has, and which are missing; and the hit before it. */
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
/** `moments`: events and messages, where these were asked for. */
export type Recall = { readonly hits: readonly Hit[]; readonly moments: readonly MomentHit[]; readonly searched: number; readonly notFetched: number }

/** A kept conversation in a list: `changed` by the clock of whose device wrote last, `preview` the beginning of what was said last. Moments are milliseconds since 1970. */
export type SessionLine = { readonly session: string; readonly scope: string; readonly title: string; readonly preview: string; readonly messages: number; readonly changed: number; readonly own: boolean }
/** One message as people read it, whatever program wrote it; `tools`: those that it calls. `own`: false where it was imported and nobody approved it. */
export type SessionMessage = { readonly role: 'user' | 'assistant' | 'system' | 'tool' | ''; readonly at: number; readonly text: string; readonly tools: readonly string[]; readonly own: boolean }
/** One conversation with its last messages, `said`, and how many stand before these. `covered` of all stand in the summary; `seen` goes to who forgets it. */
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

/** A memory in the graph: `kind` its category, `observations` what lists in its text say of it. */
export type Node = { readonly key: string; readonly name: string; readonly kind: string; readonly observations: readonly string[] }
/** A relation between two memories, by their keys. */
export type Edge = { readonly begin: string; readonly type: string; readonly end: string }
/** Entities and the relations among them. `more`: there were more than were asked for. */
export type GraphPart = { readonly nodes: readonly Node[]; readonly edges: readonly Edge[]; readonly more: boolean }

/** What a dream did: keys that have another text since, and keys that were taken away. `back`: how many would be as before if it were taken back here now. */
export type Dream = {
  readonly id: string
  readonly scope: string
  readonly at: number
  /** What made it, `rules` or a model, and the device that did it. */
  readonly by: string
  readonly device: string
  readonly label: string
  readonly written: readonly string[]
  readonly removed: readonly string[]
  readonly undone: boolean
  readonly back: number
}
/** What taking a dream back came to: keys that are as before, that somebody wrote since, and whose text is not kept here any more or was forgotten. */
export type Undoing = { readonly id: string; readonly scope: string; readonly back: readonly string[]; readonly changed: readonly string[]; readonly lost: readonly string[] }

export type Imported = { readonly added: number; readonly kept: number; readonly same: number; readonly events: number; readonly problems: readonly string[] }

/** Something changed: by a write here, by another tab, or by a sync. */
export type Change = { readonly revision: number }
