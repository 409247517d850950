#!/usr/bin/env nextflow

// Starts the workflow in nextflow/ from the root of the tree: nextflow run . --input mosaics --outdir results
// nextflow/README.md describes it.

include { STRATA } from './nextflow/main'

workflow {
    STRATA()
}
