/** Dreams: the proposed changes next to the current texts, their approval, and undo. */

import { html, nothing, type PropertyValues, type TemplateResult } from 'lit'
import { marked, others } from './differing.ts'
import type { DreamingClient, Dreamt, DreamFound, DreamState, DreamStep, Done, Proposal } from './life.ts'
import { Refusal } from './client.ts'
import { empty, many, moment, sentence, View } from './view.ts'

/** Maximum number of changed keys that are named. */
const NAMED = 12
const KINDS: Readonly<Record<string, string>> = { 'broken-link': 'has a broken link', 'stale-line': 'has an index line with a dead link', alike: 'is similar to', contradiction: 'may contradict', faded: 'has faded' }

export class DreamsView extends View {
  static override properties = { ...View.properties, state: { state: true }, proposal: { state: true }, now: { state: true }, past: { state: true }, said: { state: true }, looking: { state: true }, ready: { state: true } }
  /** Null if the token is not for the whole vault, since only that has this state. */
  declare state: DreamState | null
  declare proposal: Proposal | null
  /** The current text of each memory in a proposal; null without one. */
  declare now: ReadonlyMap<string, string | null>
  declare past: readonly Dreamt[]
  declare said: string
  declare looking: boolean
  declare ready: boolean

  constructor() {
    super()
    Object.assign(this, { state: null, proposal: null, now: new Map(), past: [], said: '', looking: false, ready: false })
  }

  protected override willUpdate(changed: PropertyValues<this>): void {
    if (!changed.has('place')) return
    const before = changed.get('place')
    if (before?.scope !== this.place.scope || before?.vaultName !== this.place.vaultName) Object.assign(this, { said: '', proposal: null, ready: false })
    if (before?.scope !== this.place.scope || before?.revision !== this.place.revision || before?.client !== this.place.client) void this.#load()
  }

  async #load(): Promise<void> {
    const { scope, whole } = this.place
    const { dreaming, dreams } = this.life
    await this.attempt(async () => {
      const [state, proposal, past] = await Promise.all([whole ? (dreaming?.dreamState(scope) ?? null) : null, dreaming?.proposal(scope) ?? null, dreams.dreams(scope)])
      const now = await this.#texts(proposal)
      if (scope === this.place.scope) Object.assign(this, { state, proposal, past, now, ready: true })
    })
  }

  async #texts(proposal: Proposal | null): Promise<Map<string, string | null>> {
    const keys = new Set(proposal?.steps.flatMap(step => step.changes.map(one => one.key)))
    const found = new Map<string, string | null>()
    for (const key of keys) {
      try {
        found.set(key, (await this.place.client.read(key, this.place.scope)).text)
      } catch (error) {
        if (!(error instanceof Refusal) || error.status !== 404) throw error
        found.set(key, null)
      }
    }
    return found
  }

  async #dream(dreaming: DreamingClient): Promise<void> {
    this.looking = true
    this.said = ''
    const found = await this.act(() => dreaming.dream(this.place.scope))
    this.looking = false
    if (found !== undefined) {
      if (!found.steps.length) this.said = `Scanned ${many(found.lookedAt, 'memory', 'memories')}. Nothing to clean up.`
      await this.#load()
    }
  }

  async #do(work: () => Promise<Done>, words: (done: Done) => string): Promise<void> {
    const done = await this.act(work)
    const failed = this.failed
    if (done !== undefined) this.said = `${words(done)}${done.left.length ? ` Left as it is, since it changed meanwhile: ${done.left.join('; ')}.` : ''}`
    await this.#load()
    this.failed ??= failed
  }

  #step(step: DreamStep): TemplateResult {
    return html`<article class="clash"><h3 dir="auto">${sentence(step.why)}</h3>${step.changes.map(one => {
      const now = this.now.get(one.key) ?? null
      return html`<h4 dir="auto"><a href=${`#/memories/${encodeURIComponent(one.key)}`}>${one.key}</a> ${one.text === null ? html`<span class="kind warns">will be deleted</span>` : nothing}</h4>
        <div class="sides">${now === null ? nothing : html`<section class="side"><header><strong>Now</strong></header><pre dir="auto" tabindex="0" aria-label=${`Now, ${one.key}`}>${one.text === null ? now : marked(now, others([one.text]))}</pre></section>`}
        ${one.text === null ? nothing : html`<section class="side"><header><strong>Then</strong></header><pre dir="auto" tabindex="0" aria-label=${`Then, ${one.key}`}>${marked(one.text, others([now]))}</pre></section>`}</div>`
    })}</article>`
  }

  #judged(found: readonly DreamFound[]): TemplateResult | typeof nothing {
    if (!found.length) return nothing
    return html`<h3>For you to review</h3><ul class="things">${found.map(one => html`<li><a href=${`#/memories/${encodeURIComponent(one.key)}`} dir="auto">${one.key}</a> ${KINDS[one.kind] ?? one.kind}
      ${one.kind === 'alike' || one.kind === 'contradiction' ? html`<a href=${`#/memories/${encodeURIComponent(one.other)}`} dir="auto">${one.other}</a>` : html`<span dir="auto">${one.other}</span>`}${one.detail ? html`<div class="faint" dir="auto">${one.detail}</div>` : nothing}</li>`)}</ul>`
  }

  #proposed(dreaming: DreamingClient): TemplateResult {
    const one = this.proposal
    if (one === null || (!one.steps.length && !one.found.length)) return empty('No proposals', 'A scan of all memories finds duplicates, outdated texts and dead links. It changes nothing without your approval.')
    const scope = this.place.scope
    const changes = one.steps.reduce((sum, step) => sum + step.changes.length, 0)
    const more = one.left ? `, ${one.left.toLocaleString()} more are left for the next` : ''
    return html`<div class="line above"><p class="count" role="status">Scanned ${many(one.lookedAt, 'memory', 'memories')} ${moment(one.at)}. ${changes ? html`<strong>${many(changes, 'change')} proposed</strong>${more}.` : 'Nothing to clean up.'}</p>
      ${changes && this.mayWrite ? html`<button class="main" ?disabled=${this.acting} @click=${() => void this.#do(() => dreaming.applyDream(scope, one.id), done => `Done: ${many(done.changed, 'memory', 'memories')} changed, ${done.removed.toLocaleString()} deleted.`)}>Apply all</button>` : nothing}</div>
      ${one.steps.map(step => this.#step(step))}${this.#judged(one.found)}`
  }

  #past(): TemplateResult | typeof nothing {
    if (!this.past.length) return this.life.dreaming ? nothing : empty('No dream has changed anything', 'Changes that a dream makes on any of your devices appear here.')
    const scope = this.place.scope
    return html`<h3>${this.life.dreaming ? 'Dreams of this device' : 'Applied dreams'}</h3><ul class="versions">${this.past.map(one => html`<li><div>${moment(one.at)} ${one.undone ? html`<span class="kind">undone</span> ` : nothing}<span class="faint" dir="auto">${many(one.written, 'memory', 'memories')} changed, ${one.removed.toLocaleString()} deleted, by ${one.by}${one.on ? `, on ${one.on}` : ''}</span>${this.#changed(one.keys ?? [])}</div>
      ${one.undone ? nothing : one.back === 0 ? html`<span class="faint">It cannot be undone here</span>`
      : this.mayWrite ? html`<button ?disabled=${this.acting} @click=${() => void this.#do(() => this.life.dreams.undoDream(scope, one.id), done => `Undone: ${many(done.changed, 'memory', 'memories')} restored.`)}>Undo</button>` : nothing}</li>`)}</ul>`
  }

  #changed(keys: readonly string[]): TemplateResult | typeof nothing {
    if (!keys.length) return nothing
    const more = keys.length - NAMED
    return html`<div>${keys.slice(0, NAMED).map(key => html`<a href=${`#/memories/${encodeURIComponent(key)}`} dir="auto">${key}</a> `)}${more > 0 ? html`<span class="faint">and ${more.toLocaleString()} more</span>` : nothing}</div>`
  }

  #state(): string {
    const state = this.state
    if (state === null) return ''
    const last = state.worked ? `Last done ${moment(state.worked)}.` : ''
    const failed = state.failed ? `The last one failed ${moment(state.failed)} (${state.failure}).` : ''
    const itself = state.enabled && state.chosen ? `It starts automatically${state.waitsFor ? `, but not yet: ${state.waitsFor}` : ' when it is due'}.` : ''
    return [last, failed, itself].filter(Boolean).join(' ')
  }

  protected override render(): TemplateResult {
    const { dreaming } = this.life
    const under = this.looking || this.state?.underWay
    return html`<section class="page wide" aria-busy=${this.busy}><div class="line"><h2>Tidy up</h2>${dreaming ? html`<div class="actions">
        ${under && this.place.whole ? html`<button class="quiet" @click=${() => void this.attempt(() => dreaming.abortDream(), true)}>Stop</button>` : nothing}
        ${this.mayWrite ? html`<button @click=${() => void this.#dream(dreaming)} ?disabled=${under}>${under ? 'Scanning…' : 'Scan the memories'}</button>` : nothing}</div>` : nothing}</div>
      ${dreaming ? nothing : html`<p class="faint">A proposal stays on the device that made it: view it there, with <code>ipfsmem ui</code> or <code>ipfsmem dream show</code>.</p>`}
      ${this.problem()}${this.#state() ? html`<p class="faint">${this.#state()}</p>` : nothing}
      ${this.said ? html`<p role="status" class="outcome">${this.said}</p>` : nothing}
      ${this.ready ? html`${dreaming ? this.#proposed(dreaming) : nothing}${this.#past()}` : nothing}</section>`
  }
}
customElements.define('dreams-view', DreamsView)
