/** One memory: read, edited next to its preview, its revisions, forgotten. A save replaces only the shown text. */

import { html, nothing, type PropertyValues, type TemplateResult } from 'lit'
import { type Draft, Refusal, type Shown, type Version } from './client.ts'
import type { Kept } from './drafts.ts'
import { marked, others } from './differing.ts'
import './prose.ts'
import { empty, many, moment, View } from './view.ts'

export const TYPES = ['user', 'feedback', 'project', 'reference', 'procedure', 'episode']
type Mode = 'read' | 'edit' | 'history'

export class MemoryDetail extends View {
  static override properties = { ...View.properties, key: { attribute: false }, shown: { state: true }, mode: { state: true }, draft: { state: true }, versions: { state: true }, past: { state: true }, newKey: { state: true }, stale: { state: true }, theirs: { state: true }, sure: { state: true }, raw: { state: true }, unseen: { state: true } }
  declare key: string
  declare shown: Shown | null
  declare mode: Mode
  declare draft: Draft
  declare versions: readonly Version[]
  declare past: { sha256: string; text: string } | null
  declare newKey: string
  /** Whether the memory changed since the edit began; saving waits until the change was shown. */
  declare stale: boolean
  /** The text written elsewhere during the edit; null if it was forgotten. */
  declare theirs: Shown | null
  declare sure: boolean
  /** Whether the text is shown unformatted; at first so for texts of others. */
  declare raw: boolean | null
  /** Number of words of the text that its rendered form lacks. */
  declare unseen: number

  constructor() {
    super()
    Object.assign(this, { key: '', shown: null, mode: 'read', versions: [], past: null, newKey: '', stale: false, theirs: null, sure: false, raw: null, unseen: 0, draft: draftOf(null) })
  }

  protected override willUpdate(changed: PropertyValues<this>): void {
    const before = changed.get('place')
    if (changed.has('key') || (before !== undefined && (before.scope !== this.place.scope || before.vaultName !== this.place.vaultName))) {
      Object.assign(this, { shown: null, mode: this.key ? 'read' : 'edit', past: null, stale: false, theirs: null, sure: false, raw: null, unseen: 0, failed: null, draft: draftOf(null), newKey: '' })
      const kept = this.place.drafts.memory(this.place.vaultName, this.place.scope, this.key)
      if (kept !== null) Object.assign(this, { ...kept, mode: 'edit' })
      if (this.key) void (kept === null ? this.#load() : this.#refresh())
    } else if (before !== undefined && before.revision !== this.place.revision && this.key) void this.#refresh()
  }

  async #load(): Promise<void> {
    const key = this.key
    const shown = await this.attempt(() => this.place.client.read(key, this.place.scope))
    if (key !== this.key || shown === undefined) return
    this.shown = shown
  }

  /** Update the shown text after a change elsewhere; an editor sees the new text next to the draft. An open revision stays open. */
  async #refresh(): Promise<void> {
    const { key } = this
    const { scope } = this.place
    let now: Shown | null
    try {
      now = await this.place.client.read(key, scope)
    } catch (error) {
      if (this.mode === 'read' && key === this.key) return this.#load()
      if (!(error instanceof Refusal) || error.status !== 404) return
      now = null
    }
    if (key !== this.key || scope !== this.place.scope || this.mode === 'history') return
    if (this.mode === 'edit') {
      this.stale = now?.seen !== this.shown?.seen
      if (this.stale) this.theirs = now
    } else if (now !== null && now.seen !== this.shown?.seen) {
      this.shown = now
      this.sure = false
    }
  }

  /** Ctrl+Enter or Ctrl+S saves, with the command key on macOS. */
  #keyed(event: KeyboardEvent): void {
    if (!(event.ctrlKey || event.metaKey) || (event.key !== 'Enter' && event.key !== 's')) return
    event.preventDefault()
    const form = event.currentTarget as HTMLFormElement
    if (form.querySelector('button.main:disabled') === null) form.requestSubmit()
  }

  #read(): void {
    Object.assign(this, { mode: 'read', stale: false, theirs: null, failed: null })
    void this.#refresh()
  }

  #edit(): void {
    this.draft = draftOf(this.shown)
    this.mode = 'edit'
    this.stale = false
    this.theirs = null
  }

  async #save(event: Event): Promise<void> {
    event.preventDefault()
    const key = this.key || this.newKey.trim() || keyOf(this.draft.name)
    const { type, ...parts } = this.draft
    const written = type === draftOf(this.shown).type ? parts : this.draft
    const made = await this.attempt(() => this.place.client.write(key, this.place.scope, written, this.shown?.seen ?? null), true)
    if (made === undefined) {
      if (this.failed?.status !== 412) return
      if (this.key) await this.#refresh()
      else this.failed = new Refusal(this.failed.kind, `there is a memory ${key} already`, 'Choose another key. Nothing was replaced.', 412)
      return
    }
    this.#letGo()
    this.shown = made
    this.mode = 'read'
    this.stale = false
    this.theirs = null
    if (!this.key) this.dispatchEvent(new CustomEvent('made', { detail: key }))
  }

  #letGo(): void {
    this.#keep(null)
  }

  /** Report to the list when a draft begins or ends. */
  #keep(kept: Kept | null): void {
    const { drafts, vaultName, scope } = this.place
    const before = drafts.memory(vaultName, scope, this.key)
    drafts.keep(vaultName, scope, this.key, kept)
    if ((before === null) !== (kept === null)) this.dispatchEvent(new CustomEvent('drafted'))
  }

  get #typed(): boolean {
    return this.newKey !== '' || JSON.stringify(this.draft) !== JSON.stringify(draftOf(this.shown))
  }

  /** Leave the editor; with changes, the first click only asks. */
  #cancel(): void {
    if (this.#typed && !this.sure) {
      this.sure = true
      return
    }
    this.#letGo()
    this.sure = false
    if (this.key && this.shown !== null) this.#read()
    else this.dispatchEvent(new CustomEvent('close'))
  }

  #takeTheirs(): void {
    this.#letGo()
    if (this.theirs === null) return void this.dispatchEvent(new CustomEvent('close'))
    this.failed = null
    this.shown = this.theirs
    this.#edit()
  }

  /** Continue with this draft on the new version: fields that the person did not change take its values. */
  #keepMine(): void {
    const before = draftOf(this.shown)
    const changed = Object.entries(this.draft).filter(([name, value]) => String(value) !== String(before[name as keyof Draft]))
    this.draft = this.theirs === null ? this.draft : { ...draftOf(this.theirs), ...(Object.fromEntries(changed) as Partial<Draft>) }
    this.shown = this.theirs
    this.failed = null
    this.stale = false
    this.#change({})
  }

  async #history(): Promise<void> {
    this.mode = 'history'
    this.past = null
    this.versions = (await this.attempt(() => this.place.client.history(this.key, this.place.scope))) ?? []
  }

  async #forget(): Promise<void> {
    if (!this.sure) {
      this.sure = true
      return
    }
    const { client, scope } = this.place
    const seen = this.shown!.seen
    if ((await this.attempt(async () => { await client.forget(this.key, scope, seen); return true }, true)) === true) this.dispatchEvent(new CustomEvent('close'))
    this.sure = false
  }

  async #restore(sha256: string): Promise<void> {
    const { client, scope } = this.place
    const seen = this.shown?.seen ?? ''
    const done = await this.attempt(async () => { await client.restore(this.key, scope, sha256, seen); return true }, true)
    if (done) {
      await this.#load()
      this.mode = 'read'
    }
  }

  #change(part: Partial<Draft>): void {
    this.draft = { ...this.draft, ...part }
    this.sure = false
    this.#keep(this.#typed ? { draft: this.draft, shown: this.shown, newKey: this.newKey } : null)
  }

  protected override render(): TemplateResult {
    const shown = this.shown
    return html`<article class="memory" aria-busy=${this.busy}>
      <header class="bar">
        <button class="quiet back" @click=${() => this.dispatchEvent(new CustomEvent('close'))}>‹ Memories</button>
        <h2 dir="auto">${this.key ? shown?.fields['name'] || this.key : 'New memory'}</h2>
        ${this.key && shown !== null && this.mode === 'read' ? html`<div class="actions">
          ${this.mayWrite ? html`<button @click=${this.#edit}>Edit</button>` : nothing}
          <button @click=${this.#history}>History</button>
          ${this.mayWrite ? html`<button class=${this.sure ? 'danger' : 'quiet'} @click=${this.#forget} @blur=${() => (this.sure = false)}>${this.sure ? 'Forget on every device' : 'Forget'}</button>` : nothing}</div>` : nothing}
        ${this.mode === 'history' ? html`<div class="actions"><button @click=${this.#read}>Done</button></div>` : nothing}
      </header>
      ${this.#missing ? nothing : this.problem()}
      ${this.#missing ? this.#absent() : this.mode === 'edit' ? this.#editor() : this.mode === 'history' ? this.#versions() : shown === null ? nothing : this.#text(shown)}
    </article>`
  }

  /** Whether the memory does not exist any more. */
  get #missing(): boolean {
    return this.mode === 'read' && this.shown === null && this.failed?.status === 404
  }

  #absent(): TemplateResult {
    return html`${empty('Not here', 'It was deleted, or never written. Its history shows whether it can be restored.')}
      <div class="actions middle"><button @click=${this.#history}>History</button></div>`
  }

  #text(shown: Shown): TemplateResult {
    const { name: _name, description, tags, type, created, updated, ...others } = shown.fields
    return html`${description ? html`<p class="lead" dir="auto">${description}</p>` : nothing}
      <dl class="facts">
        <div><dt>Key</dt><dd><code>${shown.key}</code></dd></div>
        ${type ? html`<div><dt>Type</dt><dd>${type}</dd></div>` : nothing}
        ${tags ? html`<div><dt>Tags</dt><dd dir="auto">${tags.replace(/^\[|\]$/g, '')}</dd></div>` : nothing}
        ${updated ?? created ? html`<div><dt>Changed</dt><dd>${updated ?? created}</dd></div>` : nothing}
        ${Object.entries(others).map(([field, value]) => html`<div><dt dir="auto">${field}</dt><dd dir="auto">${value}</dd></div>`)}
        ${shown.merged ? html`<div><dt>Merged</dt><dd>of concurrent edits of several devices</dd></div>` : nothing}
      </dl>
      ${shown.body.trim() ? this.#body(shown) : html`<p class="prose faint">No text.</p>`}`
  }

  /** The rendered text, with a note on words that a model gets and a person does not see; or the text unformatted. */
  #body(shown: Shown): TemplateResult {
    const raw = this.raw ?? !shown.own
    return html`${raw ? html`<pre class="prose" dir="auto">${shown.body}</pre>` : html`<prose-text class="prose" dir="auto" .text=${shown.body} @unseen=${(event: CustomEvent<number>) => (this.unseen = event.detail)}></prose-text>`}
      <p class="faint beside" role="status">${raw ? (shown.own ? 'The text as it is stored.' : 'The text of somebody else, as it is stored.') : this.unseen ? html`<span class="warns">${many(this.unseen, 'word or mark', 'words or marks')} of this text ${this.unseen === 1 ? 'is' : 'are'} not shown here; agents get ${this.unseen === 1 ? 'it' : 'them'}.</span>` : nothing}
        <button class="quiet" @click=${() => (this.raw = !raw)}>${raw ? 'Show it formatted' : 'Show the stored text'}</button></p>`
  }

  #editor(): TemplateResult {
    const draft = this.draft
    return html`<form class="editor" @submit=${this.#save} @keydown=${this.#keyed}>
      ${this.stale ? html`<div class="problem" role="alert"><strong>It was ${this.theirs === null ? 'forgotten' : 'changed'} elsewhere while you edited.</strong> Nothing was replaced.
        <button type="button" @click=${this.#keepMine}>Continue with mine</button> <button type="button" class="quiet" @click=${this.#takeTheirs}>${this.theirs === null ? 'Keep it deleted' : 'Take theirs'}</button></div>` : nothing}
      ${this.theirs !== null && (this.stale || this.theirs === this.shown) ? html`<section class="side"><header><strong>Theirs</strong> <span class="faint">the current text; yours is below</span></header>
        <pre dir="auto" tabindex="0" aria-label="Current text">${this.theirs.text}</pre></section>` : nothing}
      <div class="fields">
        <label>Name<input .value=${draft.name} @input=${(event: Event) => this.#change({ name: valueOf(event) })} dir="auto" autocomplete="off"></label>
        ${this.key ? nothing : html`<label>Key<input .value=${this.newKey} placeholder=${keyOf(draft.name) || 'a-short-name'} pattern="[a-z0-9][a-z0-9_\\-]{0,63}" title="a to z, 0 to 9, - and _"
          @input=${(event: Event) => { this.newKey = valueOf(event); this.#change({}) }} autocomplete="off" spellcheck="false"></label>`}
        <label>Type<select .value=${draft.type} @change=${(event: Event) => this.#change({ type: valueOf(event) })}>${[...new Set(['', ...TYPES, draft.type])].map(one => html`<option value=${one} ?selected=${one === draft.type}>${one || 'none'}</option>`)}</select></label>
        <label>Tags<input .value=${draft.tags.join(', ')} placeholder="separated by commas" @change=${(event: Event) => this.#change({ tags: valueOf(event).split(',').map(one => one.trim()).filter(Boolean) })} autocomplete="off"></label>
        <label class="wide">Description<input .value=${draft.description} placeholder="One line that says when this matters" @input=${(event: Event) => this.#change({ description: valueOf(event) })} dir="auto" autocomplete="off"></label>
      </div>
      <div class="beside">
        <label class="source"><span>Text (Markdown)</span><textarea .value=${draft.body} @input=${(event: Event) => this.#change({ body: valueOf(event) })} dir="auto" spellcheck="true"></textarea></label>
        <div class="preview"><span class="label">Preview</span>${draft.body.trim() ? html`<prose-text class="prose" dir="auto" aria-live="off" .text=${draft.body}></prose-text>` : html`<p class="faint">The formatted text appears here.</p>`}</div>
      </div>
      <div class="actions end"><button type="button" class=${this.sure ? 'danger' : 'quiet'} @click=${this.#cancel} @blur=${() => (this.sure = false)}>${this.sure ? 'Discard my text' : 'Cancel'}</button>
        <button class="main" title="Ctrl+Enter" aria-keyshortcuts="Control+Enter" ?disabled=${this.busy || this.stale}>Save</button></div>
    </form>`
  }

  #versions(): TemplateResult {
    return html`<ol class="versions">${this.versions.map(one => html`<li>
        <div><strong>${one.sha256 === null ? 'Forgotten' : moment(one.at)}</strong> <span class="faint">${one.by}${one.now === 'shown' ? ' · shown now' : one.now === 'beside' ? ' · in conflict' : ''}</span></div>
        ${one.sha256 !== null && one.now !== 'shown' ? html`<div class="actions">
          <button @click=${() => void this.#show(one.sha256!)} aria-expanded=${this.past?.sha256 === one.sha256}>Look</button>
          ${this.mayWrite ? html`<button @click=${() => void this.#restore(one.sha256!)}>Restore</button>` : nothing}</div>` : nothing}
        ${this.past !== null && this.past.sha256 === one.sha256 ? html`<pre dir="auto" tabindex="0" aria-label="The text of that revision; differences from the current text are marked">${this.shown === null ? this.past.text : marked(this.past.text, others([this.shown.text]))}</pre>` : nothing}
      </li>`)}</ol>`
  }

  async #show(sha256: string): Promise<void> {
    if (this.past?.sha256 === sha256) {
      this.past = null
      return
    }
    const text = await this.attempt(() => this.place.client.past(this.key, this.place.scope, sha256))
    if (text !== undefined) this.past = { sha256, text }
  }
}
customElements.define('memory-detail', MemoryDetail)

function draftOf(shown: Shown | null): Draft {
  const fields = shown?.fields ?? {}
  const tags = (fields['tags'] ?? '').replace(/^\[|\]$/g, '').split(',').map(one => one.trim()).filter(Boolean)
  return { body: shown?.body.replace(/^\n/, '') ?? '', name: fields['name'] ?? '', description: fields['description'] ?? '', type: fields['type'] ?? '', tags }
}

function keyOf(name: string): string {
  return name.toLowerCase().normalize('NFKD').replace(/[^a-z0-9]+/g, '-').replace(/^-+|-+$/g, '').slice(0, 64)
}

function valueOf(event: Event): string {
  return (event.target as HTMLInputElement).value
}
