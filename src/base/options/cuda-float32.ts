/**
 * Makes cuBLAS multiply float32 as float32: by default onnxruntime lets it round the factors to 10 bits (TF32). The libraries read
 * the variable when they load, so this comes before the first session of the process. A value that is set stays.
 */
export function keepFloat32OnCuda(): void {
  process.env['NVIDIA_TF32_OVERRIDE'] ??= '0';
}
