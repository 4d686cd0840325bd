/** The page that `ipfsmem ui` serves, built into the Python package. */

import { defineConfig } from 'vite'

export default defineConfig({
  base: './',
  build: { outDir: '../ipfsmem/page', emptyOutDir: true, target: 'es2022', modulePreload: { polyfill: false }, assetsInlineLimit: 0, sourcemap: false, license: { fileName: 'licences.md' } }
})
