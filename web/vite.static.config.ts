/** The page that any host of files can serve, with the memory in the browser itself. */

import { defineConfig } from 'vite'

export default defineConfig({
  base: './',
  worker: { format: 'es' },
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
