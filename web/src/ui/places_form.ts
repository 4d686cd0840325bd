/** The form for providers: where a vault is found, and the tokens with which this browser writes there. */

import { html, nothing, type TemplateResult } from 'lit'
import type { Spec } from '../open.ts'

export type Typed = { readonly at: string; readonly token: string }

export const typedOf = (places: readonly Spec[]): Typed[] => places.map(one => (typeof one === 'string' ? { at: one, token: '' } : { at: one.at, token: one.token ?? '' }))

export const placesOf = (typed: readonly Typed[]): Spec[] =>
  typed.filter(one => one.at.trim() !== '').map(({ at, token }) => ({ at: at.trim(), token: takesToken(at) ? token.trim() || null : null }))

const takesToken = (at: string): boolean => /^(peer:|webdav:|pinata$)/.test(at.trim())

/**
 * One line per provider, and a button for a further one. `change` gets a function of the current providers: autofill changes several fields
 * at once.
 */
export function placeRows(typed: readonly Typed[], change: (next: (typed: readonly Typed[]) => readonly Typed[]) => void): TemplateResult {
  const put = (at: number, part: Partial<Typed>): void => change(now => now.map((one, i) => (i === at ? { ...one, ...part } : one)))
  const value = (event: Event): string => (event.target as HTMLInputElement).value
  return html`${typed.map((one, i) => html`<div class="place">
      <input aria-label="Place ${i + 1}" placeholder="peer:https://…" .value=${one.at} @input=${(event: Event) => put(i, { at: value(event) })} autocomplete="off" spellcheck="false">
      ${takesToken(one.at) ? html`<input type="password" aria-label="Token for writing to provider ${i + 1}" placeholder=${one.at.trim().startsWith('webdav:') ? 'user:password' : 'token, for writing'} .value=${one.token} @input=${(event: Event) => put(i, { token: value(event) })} autocomplete="off">` : nothing}</div>`)}
    <button type="button" class="quiet" @click=${() => change(now => [...now, { at: '', token: '' }])}>Add a provider</button>
    <p class="faint">A token is stored only in this browser, sealed under a key that no script can read, and never in the vault.</p>`
}
