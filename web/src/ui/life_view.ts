/** What the views of the life of a memory share: its part of the client, and what is said where there is none. */

import { html, type TemplateResult } from 'lit'
import type { LifeClient } from './life.ts'
import { empty, View } from './view.ts'

export abstract class LifeView extends View {
  static override properties = { ...View.properties, acting: { state: true } }
  /** Whether something is being done that a person asked for. A look at what others did disables nothing: a click in that moment would be lost. */
  declare acting: boolean

  constructor() {
    super()
    this.acting = false
  }

  /** Do what a person asked for, once at a time. */
  protected async act<T>(work: () => Promise<T>): Promise<T | undefined> {
    if (this.acting) return undefined
    this.acting = true
    try {
      return await this.attempt(work)
    } finally {
      this.acting = false
    }
  }

  protected get lacking(): boolean {
    return this.place.client.life === undefined
  }

  protected get life(): LifeClient {
    return this.place.client.life!
  }

  protected absent(title: string): TemplateResult {
    return html`<section class="page"><h2>${title}</h2>${empty('Not in this browser', 'The memory of this page is in the browser itself, which does not have this view yet. The page that ipfsmem ui opens on your machine has it.')}</section>`
  }
}
