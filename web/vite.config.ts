/** The library: one ES module for pages and apps, and its worker, each on its own. */

import { defineConfig } from 'vite'
import { groups } from './vite.static.config.ts'

export default defineConfig({
  build: {
    outDir: 'build/lib',
    target: 'es2022',
    minify: 'oxc',
    lib: { entry: { ipfsmem: 'src/index.ts', worker: 'src/worker/worker.ts' }, formats: ['es'] },
    rollupOptions: { output: { minify: true, codeSplitting: { groups } } }
  }
})
