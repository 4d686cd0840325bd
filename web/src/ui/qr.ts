/** A text as a QR code, and a QR code from the camera as text. */

import { html, LitElement, svg, type TemplateResult } from 'lit'
import encodeQR from 'qr'
import { sentence } from './view.ts'

/** Light modules around the code, as its standard requires. */
const MARGIN = 4

export function qrCode(text: string, words: string): TemplateResult {
  const rows = encodeQR(text, 'raw', { ecc: 'low', border: MARGIN })
  const dark = rows.flatMap((row, y) => row.flatMap((on, x) => (on ? [`M${x} ${y}h1v1h-1z`] : []))).join('')
  return html`<svg class="qr" viewBox="0 0 ${rows.length} ${rows.length}" role="img" aria-label=${words} shape-rendering="crispEdges">${svg`<path d=${dark} />`}</svg>`
}

/** The camera, until it has read a code; the text goes to `read`. */
export class QrScanner extends LitElement {
  static override properties = { read: { attribute: false }, on: { state: true }, failed: { state: true } }
  declare read: (text: string) => void
  declare on: boolean
  declare failed: string
  #stop: (() => void) | null = null

  constructor() {
    super()
    Object.assign(this, { on: false, failed: '' })
  }

  protected override createRenderRoot(): HTMLElement {
    return this
  }

  async #start(): Promise<void> {
    this.#end()
    let stream: MediaStream | null = null
    let timer = 0
    let isOver = false
    // The person may close it during the permission prompt: then the stream is stopped at once.
    const stop = (): void => {
      isOver = true
      clearInterval(timer)
      for (const track of stream?.getTracks() ?? []) track.stop()
    }
    this.#stop = stop
    this.on = true
    this.failed = ''
    try {
      await this.updateComplete
      if (isOver) return
      const video = this.querySelector('video')!
      stream = await navigator.mediaDevices.getUserMedia({ video: { facingMode: 'environment', width: { ideal: 1280 } } })
      if (isOver) return stop()
      const { default: decodeQR } = await import('qr/decode.js')
      video.srcObject = stream
      await video.play()
      if (isOver) return
      const canvas = document.createElement('canvas')
      const look = (): void => {
        const { videoWidth: width, videoHeight: height } = video
        if (width > 0) {
          Object.assign(canvas, { width, height })
          const context = canvas.getContext('2d', { willReadFrequently: true })!
          context.drawImage(video, 0, 0)
          try {
            const text = decodeQR(context.getImageData(0, 0, width, height))
            this.#end()
            this.read(text)
          } catch {
            // No code in this picture.
          }
        }
      }
      timer = window.setInterval(look, 200)
    } catch (error) {
      if (isOver) return
      this.#end()
      this.failed = `the camera cannot be used: ${error instanceof Error ? error.message : error}`
    }
  }

  #end(): void {
    this.#stop?.()
    this.#stop = null
    this.on = false
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback()
    this.#end()
  }

  protected override render(): TemplateResult {
    return html`${this.on ? html`<video class="camera" muted playsinline aria-label="Camera picture"></video><button type="button" class="quiet" @click=${() => this.#end()}>Close the camera</button>`
      : html`<button type="button" class="quiet" @click=${() => void this.#start()}>Read its QR code with the camera</button>`}
      ${this.failed ? html`<p class="faint" role="alert">${sentence(this.failed)} Copy the text instead.</p>` : ''}`
  }
}
customElements.define('qr-scanner', QrScanner)
