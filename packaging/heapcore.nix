# heapcore for Nix. The layout of the map in reports is npm's:
#
#	npm pack d3-hierarchy@3.1.2
#	nix-build packaging/heapcore.nix --arg layout ./d3-hierarchy-3.1.2.tgz
{ pkgs ? import <nixpkgs> { }, layout }:
pkgs.stdenv.mkDerivation {
  pname = "heapcore";
  version = "0.1.0";
  src = ../.;
  nativeBuildInputs = with pkgs; [ cmake ninja pkg-config ];
  buildInputs = with pkgs; [
    elfutils libiberty zlib zstd lz4 xz bzip2 capstone readline jansson xxHash sqlite libmicrohttpd
  ];
  preConfigure = ''
    tar -xf ${layout} -C "$TMPDIR"
    cmakeFlags="$cmakeFlags -DBUILD_TESTING=OFF -DD3_HIERARCHY=$TMPDIR/package/dist/d3-hierarchy.min.js"
  '';
}
