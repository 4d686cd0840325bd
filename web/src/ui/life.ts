/**
 * What the page asks about the life of a memory: sessions, the graph, dreams, usage.
 *
 * The words are those of every other face. Moments are milliseconds since 1970 UTC, costs are millionths of a US dollar.
 */

export type Session = { readonly session: string; readonly title: string; readonly preview: string; readonly messages: number; readonly changed: number; readonly own: boolean }
/** `covered` of its messages stand in the summary. `own`, `summaryOwn`: false where messages, or those in the summary, were imported and nobody approved them. */
export type SessionFacts = { readonly session: string; readonly title: string; readonly messages: number; readonly tokens: number; readonly devices: number; readonly began: number | null; readonly changed: number | null; readonly covered: number; readonly summary: string; readonly summaryBy: string; readonly summaryOwn: boolean; readonly own: boolean; readonly seen: string }
export type Message = { readonly role: string; readonly at: number; readonly text: string; readonly tools: readonly string[]; readonly own: boolean }
/** One that is damaged, which nothing can be read of; it can be forgotten as it was seen. */
export type SessionProblem = { readonly session: string; readonly detail: string; readonly seen: string }
export type SessionHit = { readonly session: string; readonly at: number; readonly role: string; readonly text: string; readonly own: boolean }

export type Entity = { readonly key: string; readonly name: string; readonly kind: string; readonly observations: readonly string[] }
export type Relation = { readonly begin: string; readonly type: string; readonly end: string }
/** `more`: there is more than this. */
export type Graph = { readonly nodes: readonly Entity[]; readonly edges: readonly Relation[]; readonly more: boolean }

export type DreamState = { readonly waitsFor: string; readonly underWay: boolean; readonly phase: string; readonly worked: number; readonly failed: number; readonly failure: string; readonly chosen: boolean; readonly enabled: boolean }
/** `text` null: the memory will be deleted. */
export type DreamChange = { readonly key: string; readonly text: string | null }
export type DreamStep = { readonly why: string; readonly changes: readonly DreamChange[] }
export type DreamFound = { readonly kind: string; readonly key: string; readonly other: string; readonly detail: string }
export type Proposal = { readonly id: string; readonly at: number; readonly by: string; readonly steps: readonly DreamStep[]; readonly found: readonly DreamFound[]; readonly lookedAt: number; readonly left: number }
/** What a dream did. Where that is known: the device that it was `on`, the `keys` that it changed, whether it was taken back, and how many memories would be as before if it were now. */
export type Dreamt = { readonly id: string; readonly at: number; readonly by: string; readonly written: number; readonly removed: number; readonly on?: string; readonly keys?: readonly string[]; readonly undone?: boolean; readonly back?: number }
/** What was done, and what was left as somebody wrote meanwhile. */
export type Done = { readonly changed: number; readonly removed: number; readonly left: readonly string[] }

export type By = 'agent' | 'provider' | 'model' | 'day'
export type Total = { readonly name: string; readonly uses: number; readonly input: number; readonly output: number; readonly cost: number }
/** `limit` 0: there is none. */
export type Budget = { readonly period: string; readonly spent: number; readonly limit: number }

export interface SessionsClient {
  /** The newest, as many as the settings say, or all; `older` are left out, and `problems` cannot be read. */
  sessions(scope: string, all: boolean): Promise<{ sessions: readonly Session[]; older: number; problems: readonly SessionProblem[] }>
  session(scope: string, name: string): Promise<SessionFacts>
  /** The last messages, and how many stand before them. */
  messages(scope: string, name: string, last: number): Promise<{ before: number; messages: readonly Message[] }>
  searchSessions(scope: string, query: string): Promise<readonly SessionHit[]>
  exportSession(scope: string, name: string, format: 'markdown' | 'json'): Promise<Blob>
  deleteSession(scope: string, name: string, seen: string): Promise<void>
  /** Make its imported messages the person's own; how many they were. */
  approveSession(scope: string, name: string, seen: string): Promise<number>
}

export interface GraphClient {
  entities(scope: string, words: string): Promise<readonly Entity[]>
  /** All of it, or what is at most so many relations away from an entity. */
  graph(scope: string, how: { entity?: string; depth?: number; limit?: number }): Promise<Graph>
}

export interface DreamsClient {
  dreams(scope: string): Promise<readonly Dreamt[]>
  undoDream(scope: string, id: string): Promise<Done>
}

/** Dreaming itself. */
export interface DreamingClient {
  dreamState(scope: string): Promise<DreamState>
  /** Scan the memories; changes none. */
  dream(scope: string): Promise<Proposal>
  /** What was proposed and not done yet; null when there is nothing. */
  proposal(scope: string): Promise<Proposal | null>
  applyDream(scope: string, id: string): Promise<Done>
  abortDream(): Promise<void>
}

export interface UsageClient {
  usage(scope: string, by: By, since: string): Promise<readonly Total[]>
  /** None where this client knows no limits. */
  budgets(scope: string): Promise<readonly Budget[]>
  usageCsv(scope: string, since: string): Promise<Blob>
}

/** What a client has of it. `dreaming`: where this device dreams; a proposal is on no other. */
export type Life = { readonly sessions: SessionsClient; readonly graph: GraphClient; readonly dreams: DreamsClient; readonly dreaming?: DreamingClient; readonly usage: UsageClient }
