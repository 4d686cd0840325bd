// Written by tools/generate.py from ipfsmem/operations; change those, not this.

/** The arguments of recall. */
export type RecallBody = {
  readonly query?: string | null
  readonly queries?: readonly string[]
  readonly kind?: 'all' | 'event' | 'memory' | 'message'
  readonly limit?: number
  readonly type?: string | null
  readonly tag?: string | null
  readonly category?: string | null
  readonly when?: string | null
  readonly since?: string | null
  readonly until?: string | null
  readonly by?: string | null
  readonly about?: string | null
  readonly threshold?: number | null
  readonly why?: boolean
  readonly joined?: boolean
}

/** What `recall` found: the best hits of `searched` memories, and `moments`, where events or messages were asked for. `ranking` says by what they are in order: `words` is without a model. In `not_fetched` memories nothing could be looked for. `notice`: what a person should know of the model, said once. */
export type Recalled = {
  readonly ranking: 'words' | 'words and meaning'
  readonly searched: number
  readonly not_fetched: number
  readonly hits: readonly Found[]
  readonly notice: string
  readonly moments: readonly FoundMoment[]
}

/** One memory that `recall` found. `own` False: the word of others, a candidate. `hides`: scopes whose text under this key is not shown for it. With `why`, `parts` add up to the score, and `words` are those of the query that occur in it. With `joined`: its relations in the graph, each as its begin, its type and its end. */
export type Found = {
  readonly key: string
  readonly scope: string
  readonly own: boolean
  readonly fields: Readonly<Record<string, string>>
  readonly body: string
  readonly seen: string
  readonly by: string
  readonly member: string
  readonly written: string
  readonly score: number
  readonly hides: readonly string[]
  readonly parts: Readonly<Record<string, number>> | null
  readonly words: readonly string[] | null
  readonly joined: readonly (readonly [string, string, string])[] | null
  readonly place: number
}

/** An event of the timeline or a message of a session that `recall` found. `own` False: it was imported, a history. `at`: when, in UTC; `type`: that of the event, or who says the message (`user`, `assistant`, `tool`). `text`: the event's line, or what is said, after the name of its speaker where it has one. The rest as with a memory; its place tells the order among all that was found. */
export type FoundMoment = {
  readonly kind: 'event' | 'message'
  readonly scope: string
  readonly own: boolean
  readonly at: string
  readonly type: string
  readonly session: string
  readonly text: string
  readonly event: Readonly<Record<string, unknown>> | null
  readonly by: string
  readonly score: number
  readonly parts: Readonly<Record<string, number>> | null
  readonly words: readonly string[] | null
  readonly place: number
}

/** The routes of these operations, by name. */
export type Operations = {
  'recall': { method: 'POST', path: '/v1/recall', body: RecallBody, answer: Recalled }
}
