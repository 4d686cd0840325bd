/** The library: one ES module for pages and apps, and its worker, each on its own. */

import { defineConfig } from 'vite'

/** What is loaded where it is asked for, and by nobody else; all the rest is one file, which packs better than many. */
const LATER = /argon2|sync\/(?:administer|beginning|folder)|src\/life\/|device\/(?:all_scopes|graph|sessions|taking)|core\/(?:blob_reading|enrolling|folder|json_text|scope_tree|session_items)/

export default defineConfig({
  build: {
    outDir: 'build/lib',
    target: 'es2022',
    minify: 'oxc',
    lib: { entry: { ipfsmem: 'src/index.ts', worker: 'src/worker/worker.ts' }, formats: ['es'] },
    rollupOptions: { output: { minify: true, codeSplitting: { groups: [{ name: 'client', test: (id: string) => !LATER.test(id) && !/src\/(?:index|worker\/worker)\.ts/.test(id) }] } } }
  }
})
