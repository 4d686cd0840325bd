/** The page of `ipfsmem export --html`: one file with all that it needs inside, and a policy by which nothing else can run or be loaded. */

import { createHash } from 'node:crypto'
import { defineConfig, type Plugin } from 'vite'

const sum = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

/** Where `ipfsmem export --html` puts what it knows. */
const PLACES = { car: '%IPFSMEM_CAR%', saved: '%IPFSMEM_SAVED%', vault: '%IPFSMEM_VAULT%', keyNumber: '%IPFSMEM_KEY_NUMBER%', licences: '%IPFSMEM_LICENCES%' }

function page(script: string, style: string): string {
  const policy = [
    "default-src 'none'", `script-src ${sum(script)}`, `style-src ${sum(style)}`, 'img-src data:', "base-uri 'none'", "form-action 'none'",
    "require-trusted-types-for 'script'", 'trusted-types ipfsmem lit-html dompurify'
  ].join('; ')
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<meta name="ipfsmem-saved" content="${PLACES.saved}">
<meta name="ipfsmem-vault" content="${PLACES.vault}">
<meta name="ipfsmem-key-number" content="${PLACES.keyNumber}">
<title>A saved memory</title>
<link rel="icon" href="data:,">
<style>${style}</style>
</head>
<body>
<noscript>This page needs JavaScript, which it brings along; nothing is loaded from elsewhere.</noscript>
<script type="application/vnd.ipld.car+base64" id="car">${PLACES.car}</script>
<script type="module">${script}</script>
<script type="text/plain" id="licences">${PLACES.licences}</script>
</body>
</html>
`
}

/** The one script and the one style sheet, as a page. */
const inlined: Plugin = {
  name: 'one file',
  enforce: 'post',
  // After the bundler's own last steps.
  generateBundle: { order: 'post', handler(_options, bundle) {
    let [script, style] = ['', '']
    for (const [name, one] of Object.entries(bundle)) {
      if (one.type === 'chunk') script += one.code
      else if (name.endsWith('.css')) style += String(one.source)
      else continue
      delete bundle[name]
    }
    // What looks like markup would end the element that it stands in; in texts and patterns this is the same sign.
    script = script.replace(/<(?=!--|\/?script)/gi, '\\x3C')
    if (script === '' || style === '' || style.includes('</')) this.error('the page has no script or no style that can stand inside it')
    this.emitFile({ type: 'asset', fileName: 'rescue.html', source: page(script, style) })
  } }
}

export default defineConfig({
  plugins: [inlined],
  build: {
    outDir: '../ipfsmem/page/rescue',
    emptyOutDir: true,
    target: 'es2022',
    modulePreload: false,
    cssCodeSplit: false,
    sourcemap: false,
    rollupOptions: { input: 'src/ui/rescue.ts', output: { codeSplitting: false } }
  }
})
