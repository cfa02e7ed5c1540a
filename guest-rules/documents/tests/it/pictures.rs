use holdfast_documents::{DocumentError, Picture, PictureFormat, picture_to_pdf};
use image::ImageFormat;
use image::metadata::Orientation;

use crate::support::{PageRaster, assert_clean, assert_upright, encoded, facts, quarters};

fn jpeg(bytes: Vec<u8>) -> Picture {
    Picture {
        format: PictureFormat::Jpeg,
        bytes,
    }
}

fn png(bytes: Vec<u8>) -> Picture {
    Picture {
        format: PictureFormat::Png,
        bytes,
    }
}

/// Inserts a segment after the start of a JPEG.
fn with_segment(mut jpeg: Vec<u8>, marker: u8, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(body.len() + 2).unwrap().to_be_bytes();
    let segment = [&[0xFF, marker], &length[..], body].concat();
    jpeg.splice(2..2, segment);
    jpeg
}

fn exif(orientation: u8, big_endian: bool) -> Vec<u8> {
    let tiff: Vec<u8> = if big_endian {
        [
            &b"MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0"[..],
            &[orientation],
            b"\0\0\0\0\0\0",
        ]
        .concat()
    } else {
        [
            &b"II\x2a\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0"[..],
            &[orientation],
            b"\0\0\0\0\0\0\0",
        ]
        .concat()
    };

    [&b"Exif\0\0"[..], &tiff, b"GPS of a home"].concat()
}

#[test]
fn images_are_rotated_by_their_exif_orientation() {
    for number in 1..=8_u8 {
        let mut stored = quarters(240, 160);
        let turned = Orientation::from_exif(number).unwrap();

        // Stored so that applying the orientation gives the upright picture.
        let undone = match turned {
            Orientation::Rotate90 => Orientation::Rotate270,
            Orientation::Rotate270 => Orientation::Rotate90,
            other => other,
        };
        stored.apply_orientation(undone);

        for big_endian in [false, true] {
            let bytes = with_segment(
                encoded(&stored, ImageFormat::Jpeg),
                0xE1,
                &exif(number, big_endian),
            );
            let pdf = picture_to_pdf(&jpeg(bytes)).unwrap();
            assert_clean(&pdf);

            for raster in [
                PageRaster::poppler(&pdf, 1),
                PageRaster::own(&pdf, 1, 240).unwrap(),
            ] {
                assert!(raster.width > raster.height);
                assert_upright(
                    &raster,
                    [0.0, 0.0, 1.0, 1.0],
                    &format!("orientation {number}"),
                );
            }
        }
    }
}

#[test]
fn image_metadata_is_not_copied_into_the_document() {
    let plain = encoded(&quarters(64, 64), ImageFormat::Jpeg);
    let mut bytes = with_segment(plain, 0xE1, &exif(1, false));
    bytes = with_segment(bytes, 0xFE, b"comment: taken by somebody");
    bytes = with_segment(bytes, 0xED, b"Photoshop 3.0 caption");
    bytes = with_segment(bytes, 0xE1, b"http://ns.adobe.com/xap/1.0/\0<x:xmpmeta/>");
    bytes.extend_from_slice(b"trailing secret");

    let pdf = picture_to_pdf(&jpeg(bytes)).unwrap();
    for secret in [
        "GPS of a home",
        "somebody",
        "Photoshop",
        "xmpmeta",
        "trailing secret",
    ] {
        assert!(
            !pdf.windows(secret.len())
                .any(|window| window == secret.as_bytes()),
            "{secret}"
        );
    }

    assert_upright(
        &PageRaster::poppler(&pdf, 1),
        [0.0, 0.0, 1.0, 1.0],
        "stripped",
    );
}

#[test]
fn pngs_become_pages() {
    let pdf = picture_to_pdf(&png(encoded(&quarters(300, 200), ImageFormat::Png))).unwrap();
    assert_clean(&pdf);
    assert!(facts(&pdf, &[]).contains("144 x 96 pts"));
    assert_upright(&PageRaster::poppler(&pdf, 1), [0.0, 0.0, 1.0, 1.0], "png");
}

#[test]
fn a_phone_photo_fits_on_letter() {
    let pdf = picture_to_pdf(&jpeg(encoded(&quarters(1500, 2000), ImageFormat::Jpeg))).unwrap();
    assert!(facts(&pdf, &[]).contains("594 x 792 pts"));
}

#[test]
fn too_many_pixels_are_refused_before_they_are_decoded() {
    let mut bomb = encoded(&quarters(8, 8), ImageFormat::Png);
    bomb[16..24].copy_from_slice(&[0, 0, 0x4E, 0x20, 0, 0, 0x4E, 0x20]);
    assert!(matches!(
        picture_to_pdf(&png(bomb)),
        Err(DocumentError::OverLimit(_))
    ));

    let mut bomb = encoded(&quarters(8, 8), ImageFormat::Jpeg);
    let frame = bomb
        .windows(2)
        .position(|window| window == [0xFF, 0xC0])
        .unwrap();
    bomb[frame + 5..frame + 9].copy_from_slice(&[0xFF, 0xFF, 0xFF, 0xFF]);
    assert!(matches!(
        picture_to_pdf(&jpeg(bomb)),
        Err(DocumentError::OverLimit(_))
    ));
}

#[test]
fn a_file_that_is_not_an_image_is_refused() {
    let sound_png = encoded(&quarters(32, 32), ImageFormat::Png);
    let sound_jpeg = encoded(&quarters(32, 32), ImageFormat::Jpeg);
    assert!(picture_to_pdf(&png(sound_jpeg.clone())).is_err());
    assert!(picture_to_pdf(&jpeg(sound_png.clone())).is_err());
    assert!(picture_to_pdf(&png(Vec::new())).is_err());
    assert!(picture_to_pdf(&jpeg(vec![0xFF, 0xD8])).is_err());

    for cut in (0..sound_jpeg.len()).step_by(7) {
        assert!(
            picture_to_pdf(&jpeg(sound_jpeg[..cut].to_vec())).is_err(),
            "cut at {cut}"
        );
    }

    for cut in (0..sound_png.len().saturating_sub(20)).step_by(7) {
        assert!(
            picture_to_pdf(&png(sound_png[..cut].to_vec())).is_err(),
            "cut at {cut}"
        );
    }
}

#[test]
fn transparent_and_16_bit_images_are_supported() {
    let mut picture = image::RgbaImage::new(20, 20);
    picture.put_pixel(3, 3, image::Rgba([255, 0, 0, 128]));
    let picture = image::DynamicImage::ImageRgba8(picture);
    for picture in [
        picture.clone(),
        picture.to_rgba16().into(),
        picture.to_luma_alpha8().into(),
        picture.to_luma8().into(),
    ] {
        assert_clean(&picture_to_pdf(&png(encoded(&picture, ImageFormat::Png))).unwrap());
    }
}

#[test]
fn equal_input_gives_equal_bytes() {
    let picture = jpeg(encoded(&quarters(64, 64), ImageFormat::Jpeg));
    assert_eq!(picture_to_pdf(&picture), picture_to_pdf(&picture));
}
