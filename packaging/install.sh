#!/bin/sh
# Installs a release of holdfast on Linux, or replaces an older one, after checking the release's signature.
#
#   sh install.sh --from FOLDER|URL [--key FILE] [--prefix DIR] [--systemd]
#   sh install.sh --uninstall [--prefix DIR]
#
#   --from      folder or address of the release; also HOLDFAST_RELEASE. Unless set: the folder of this script
#   --key       public key of the release in PEM; unless set: the one in this script, if it comes from a release
#   --prefix    where to install: /usr/local unless set
#   --systemd   add a user, settings in /etc/holdfast (with another prefix: PREFIX/etc/holdfast) and a unit
#   --uninstall remove programs and unit; settings and data stay
#
# Needs openssl (3 or newer), tar, gzip and sha256sum, and curl for addresses. The programs are in
# PREFIX/lib/holdfast/VERSION; PREFIX/lib/holdfast/current is a link to the version in use.
set -eu

# `packaging/assemble` puts the key of a release here.
KEY=

fail() {
  echo "install.sh: $1" >&2
  exit 1
}

usage() {
  cat >&2 <<'USAGE'
usage: sh install.sh --from FOLDER|URL [--key FILE] [--prefix DIR] [--systemd]
       sh install.sh --uninstall [--prefix DIR]
USAGE
  exit 2
}

value_of() {
  [ "$2" -ge 2 ] || { echo "install.sh: $1 needs a value" >&2; usage; }
}

read_arguments() {
  from=${HOLDFAST_RELEASE:-}
  key_file=
  prefix=/usr/local
  systemd=false
  uninstall=false
  while [ $# -gt 0 ]; do
    case $1 in
      --from) value_of "$1" $#; from=$2; shift ;;
      --key) value_of "$1" $#; key_file=$2; shift ;;
      --prefix) value_of "$1" $#; prefix=$2; shift ;;
      --systemd) systemd=true ;;
      --uninstall) uninstall=true ;;
      *) usage ;;
    esac
    shift
  done

  case $prefix in
    /*) prefix=${prefix%/} ;;
    *) prefix=$(pwd)/$prefix ;;
  esac
  if $systemd && ! $uninstall; then
    check_service_prefix
  fi
  home=$prefix/lib/holdfast
  unit=$prefix/lib/systemd/system/holdfast.service
  case $prefix in
    '' | /usr | /usr/local) settings=/etc/holdfast ;;
    *) settings=$prefix/etc/holdfast ;;
  esac
}

# The unit names the prefix, and its service sees no home of a user (ProtectHome).
check_service_prefix() {
  [ "$(id -u)" = 0 ] || fail "--systemd adds a user and a unit: run this as root"
  case $prefix in
    /home/* | /root/* | /run/user/*) fail "a service has no access to $prefix. Choose another --prefix" ;;
    *[!A-Za-z0-9/._+-]*) fail "a unit cannot name $prefix. With --systemd, --prefix has letters, digits and / . _ + - only" ;;
  esac
}

# Sets the architecture as archives name it.
find_machine() {
  [ "$(uname -s)" = Linux ] || fail "holdfast runs on Linux; this is $(uname -s)"
  machine=$(uname -m)
  case $machine in
    amd64) machine=x86_64 ;;
    arm64) machine=aarch64 ;;
  esac
}

need() {
  command -v "$1" >/dev/null 2>&1 || fail "$1 is missing. On Debian: apt-get install $2"
}

# Gets a file of the release into the temporary folder.
get() {
  case $from in
    http://* | https://*)
      curl -fsSL --retry 2 -o "$folder/$1" "${from%/}/$1" || fail "$1 cannot be fetched from $from. Nothing was installed" ;;
    *)
      [ -f "$from/$1" ] || fail "$1 is missing in $from. Nothing was installed"
      cp "$from/$1" "$folder/$1" ;;
  esac
}

# The signature covers the checksums of all files.
check_signature() {
  if [ -n "$key_file" ]; then
    [ -r "$key_file" ] || fail "the key $key_file cannot be read"
    cp "$key_file" "$folder/key.pem"
  else
    [ -n "$KEY" ] || fail "which key signed the release? Name its public key: --key FILE"
    printf '%s\n' "$KEY" >"$folder/key.pem"
  fi

  get SHA256SUMS
  get SHA256SUMS.sig
  openssl pkeyutl -verify -pubin -inkey "$folder/key.pem" -rawin -in "$folder/SHA256SUMS" \
    -sigfile "$folder/SHA256SUMS.sig" >"$folder/said" 2>&1 ||
    fail "the signature of SHA256SUMS is not by the key ${key_file:-of this script} ($(head -n 1 "$folder/said")). Nothing was installed; get the release again from its publisher"
}

# Gets the archive for this machine, and compares it with its checksum.
get_archive() {
  archives=$(awk '$2 ~ /^holdfast-[0-9][0-9A-Za-z.+~_-]*-linux\.tar\.gz$/ { print $2 }' "$folder/SHA256SUMS")
  archive=$(printf '%s\n' "$archives" | grep -e "-$machine-linux\.tar\.gz\$" | head -n 1 || true)
  [ -n "$archive" ] || fail "the release has no program for $machine, only $(printf '%s' "$archives" | paste -sd ' '). Nothing was installed"

  get "$archive"
  awk -v name="$archive" '$2 == name' "$folder/SHA256SUMS" >"$folder/sum"
  (cd "$folder" && sha256sum -c sum >/dev/null 2>&1) ||
    fail "$archive does not have the SHA-256 of SHA256SUMS. Nothing was installed; get it again"
}

# An old release with its old signature is no upgrade, from any server.
check_version() {
  version=${archive#holdfast-}
  version=${version%-"$machine"-linux.tar.gz}
  before=$(readlink "$home/current" || true)
  [ "$(printf '%s\n' "$before" "$version" | sort -V | tail -n 1)" = "$version" ] ||
    fail "$before is installed, and the release has the older $version. Nothing was installed; see 'go back' in docs/operations.md"
}

# Unpacks the archive where it will be installed, and lets the program compare the files that belong to it.
unpack() {
  mkdir -p "$home" "$prefix/bin" 2>/dev/null || fail "$prefix cannot be written. Run this as root, or choose a folder with --prefix"
  [ -w "$home" ] && [ -w "$prefix/bin" ] || fail "$prefix cannot be written. Run this as root, or choose a folder with --prefix"
  new=$home/.new
  rm -rf "$new"
  mkdir "$new"
  tar -xzf "$folder/$archive" -C "$new" --strip-components=1 --no-same-owner || fail "$archive cannot be unpacked: is the disk full?"

  if ! listed=$("$new/bin/holdfast" shared-files 2>"$folder/said"); then
    fail "the program does not run on this machine: $(head -n 1 "$folder/said"). Nothing was installed"
  fi
  [ -z "$listed" ] || (cd "$new/share/holdfast" && printf '%s\n' "$listed" | sha256sum -c >/dev/null 2>&1) ||
    fail "the archive lacks files of its program. Nothing was installed; report it to the publisher of the release"
}

# A link of this script is replaced; a program from elsewhere is not.
check_links() {
  for name in holdfast holdfast-verify; do
    if [ -e "$prefix/bin/$name" ] || [ -h "$prefix/bin/$name" ]; then
      [ "$(readlink "$prefix/bin/$name")" = "../lib/holdfast/current/bin/$name" ] ||
        fail "$prefix/bin/$name was not installed by this script. Remove it, or choose another --prefix. Nothing was installed"
    fi
  done
}

# Deletes nothing but versions: with --prefix /var, data would be in the same folder.
remove_version() {
  [ ! -e "$1/bin/holdfast" ] || rm -rf "$1"
}

# An upgrade changes the link `current` in one step: a start finds the old version or the new one. A running server has
# its files open. The version before stays, for a way back.
switch() {
  rm -rf "$home/.old"
  [ ! -d "$home/$version" ] || mv "$home/$version" "$home/.old"
  mv "$new" "$home/$version"
  ln -sfn "$version" "$home/.current"
  mv -T "$home/.current" "$home/current"
  for name in holdfast holdfast-verify; do
    ln -sf "../lib/holdfast/current/bin/$name" "$prefix/bin/$name"
  done

  rm -rf "$home/.old"
  # After a repair, the version before is another one.
  [ "$before" != "$version" ] || return 0
  for other in "$home"/*; do
    case ${other##*/} in
      current | "$version" | "$before") ;;
      *) remove_version "$other" ;;
    esac
  done
}

# Adds what the Debian package adds: user, settings that stay as they are if there are any, and unit.
add_service() {
  getent group holdfast >/dev/null || groupadd --system holdfast
  getent passwd holdfast >/dev/null ||
    useradd --system --gid holdfast --home-dir /var/lib/holdfast --no-create-home --shell /usr/sbin/nologin holdfast

  mkdir -p "$settings" "${unit%/*}"
  if [ ! -e "$settings/holdfast.toml" ]; then
    sed -e "s|/usr/share/doc/holdfast|$home/current/share/doc/holdfast|" -e "s|/etc/holdfast|$settings|" \
      "$home/current/etc/holdfast/holdfast.toml" >"$settings/holdfast.toml"
    chown root:holdfast "$settings/holdfast.toml"
    chmod 0640 "$settings/holdfast.toml"
  fi
  sed -e "s|/usr/bin/holdfast|$prefix/bin/holdfast|" -e "s|/usr/share/doc/holdfast|$home/current/share/doc/holdfast|" \
    -e "s|/etc/holdfast|$settings|" "$home/current/lib/systemd/system/holdfast.service" >"$unit.new"
  mv "$unit.new" "$unit"
  # A new installation is configured before its first start, so only a running service is restarted.
  if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    systemctl try-restart holdfast.service
  fi
}

print_next_steps() {
  echo "holdfast $version is installed in $prefix."
  if $systemd; then
    echo "Set public_url and the others in $settings/holdfast.toml, then: systemctl enable --now $unit"
  else
    echo "Try it with sample data: $prefix/bin/holdfast dev"
  fi
  echo "The guides are in $home/current/share/doc/holdfast: README.md, docs/quickstart.md, docs/operations.md."
}

remove() {
  [ -h "$home/current" ] || fail "there is no installation of this script in $prefix"
  if [ -e "$unit" ]; then
    [ ! -d /run/systemd/system ] || systemctl disable --now "${unit##*/}" || true
    rm -f "$unit"
    [ ! -d /run/systemd/system ] || systemctl daemon-reload
  fi
  for name in holdfast holdfast-verify; do
    [ "$(readlink "$prefix/bin/$name" || true)" != "../lib/holdfast/current/bin/$name" ] || rm -f "$prefix/bin/$name"
  done
  rm -f "$home/current"
  for version in "$home"/*; do
    remove_version "$version"
  done
  rmdir "$home" 2>/dev/null || true
  echo "holdfast is removed from $prefix. Settings in $settings and data in /var/lib/holdfast stay: they may be the only authoritative copies."
}

# After a refusal, the folder of the versions is empty or has the version before.
clean_up() {
  rm -rf "$folder" "$home/.new"
  rmdir "$home" 2>/dev/null || true
}

main() {
  # Every user may start the programs, even if root has a stricter umask.
  umask 022
  read_arguments "$@"
  if $uninstall; then
    remove
    return
  fi

  [ -n "$from" ] || from=$(dirname "$0")
  find_machine
  need openssl openssl
  need tar tar
  need gzip gzip
  case $from in http://* | https://*) need curl curl ;; esac
  folder=$(mktemp -d)
  trap clean_up EXIT
  trap 'exit 1' HUP INT TERM

  check_links
  check_signature
  get_archive
  check_version
  unpack
  switch
  ! $systemd || add_service
  print_next_steps
}

# Called at the end, so that half of a script that was cut does nothing.
main "$@"
