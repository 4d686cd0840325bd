/** The page that any host of files can serve, with the memory in the browser itself: installable, and there when the network is not. */

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { defineConfig, type Plugin } from 'vite'

/** What is loaded where it is asked for, and by nobody else; all the rest of the memory is one file, in the library too: it packs better than many. */
const LATER = /argon2|hashes\/_?blake|saxes|xmlchars|sync\/(?:administer|beginning|dav_|folder|keep|peer_small|pinata|publish)|src\/life\/|device\/(?:all_scopes|dreams|graph|moments|past|promoting|sessions|importing|talks)|recall\/(?:fusion|talk|time_ranges)|core\/(?:blob_reading|enrolling|folder|json_text|scope_tree|session_items|small_objects)/
/** What only a page needs, as wallets and words, and what only an entry or a worker does. */
const PAGE = /bip39|secp256k1|sha3|core\/wallet|src\/wallet\//
const ENTRY = /src\/(?:index|worker\/(?:worker|host|offloading|warming))\.ts/
export const groups = [{ name: 'client', test: (id: string) => ![LATER, PAGE, ENTRY].some(one => one.test(id)) }, { name: 'keys', test: PAGE }]

const MANIFEST = {
  name: 'ipfsmem',
  short_name: 'ipfsmem',
  description: 'Private, portable memory for AI agents.',
  id: './',
  start_url: './',
  scope: './',
  display: 'standalone',
  background_color: '#fbfbfa',
  theme_color: '#2b5fb3',
  icons: [{ src: './icon.svg', sizes: 'any', type: 'image/svg+xml', purpose: 'any' }]
}

/** What makes of the build an app: its manifest, its icon, and a service worker that keeps all of its files. */
const installable: Plugin = {
  name: 'installable',
  generateBundle: {
    order: 'post',
    handler(_options, bundle) {
      const page = bundle['static.html']
      if (page?.type !== 'asset') return this.error('the page was not built')
      delete bundle['static.html']
      const files = new Map<string, string | Uint8Array>([
        ['index.html', page.source],
        ['manifest.webmanifest', JSON.stringify(MANIFEST)],
        ['icon.svg', readFileSync('icon.svg', 'utf8')]
      ])
      for (const [fileName, source] of files) this.emitFile({ type: 'asset', fileName, source })
      for (const [name, one] of Object.entries(bundle)) files.set(name, one.type === 'chunk' ? one.code : one.source)
      files.delete('licences.md')
      const sum = createHash('sha256')
      for (const name of [...files.keys()].sort()) sum.update(`${name}\0`).update(files.get(name) ?? '')
      const worker = readFileSync('service_worker.js', 'utf8')
        .replace('%VERSION%', sum.digest('hex').slice(0, 16))
        .replace("['%FILES%']", JSON.stringify(['./', ...[...files.keys()].filter(name => name !== 'index.html').sort()]))
      this.emitFile({ type: 'asset', fileName: 'service_worker.js', source: worker })
    }
  }
}

export default defineConfig({
  base: './',
  plugins: [installable],
  worker: { format: 'es', rollupOptions: { output: { codeSplitting: { groups } } } },
  build: {
    outDir: '../ipfsmem/page/static',
    emptyOutDir: true,
    target: 'es2022',
    modulePreload: false,
    assetsInlineLimit: 0,
    sourcemap: false,
    license: { fileName: 'licences.md' },
    rollupOptions: { input: 'static.html' }
  }
})
